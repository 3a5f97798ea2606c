// The program of ../maven, built by Gradle 8 or later.
plugins {
    application
}

val nereidVersion = providers.gradleProperty("nereid.version").getOrElse("0.1.0-SNAPSHOT")
// What build/release.sh makes.
val nereidRepository = providers.gradleProperty("nereid.repository").getOrElse(file("../../../target/release/maven").toURI().toString())
// The models that the program and the test ask.
val models = providers.gradleProperty("models").getOrElse(file("../../models").path)

repositories {
    // Nothing else has this group, and the repository has nothing else.
    exclusiveContent {
        forRepository {
            maven { url = uri(nereidRepository) }
        }
        filter { includeGroup("io.nereid") }
    }
    mavenCentral()
}

dependencies {
    implementation(platform("io.nereid:nereid-bom:$nereidVersion"))
    implementation("io.nereid:nereid-embedded")
    implementation("io.nereid:nereid-backend-onnx")
    // The logging backend is the program's choice.
    runtimeOnly("org.slf4j:slf4j-simple:2.0.18")
    testImplementation("io.nereid:nereid-junit")
    testImplementation("org.junit.jupiter:junit-jupiter:5.13.4")
    testRuntimeOnly("org.junit.platform:junit-platform-launcher:1.13.4")
}

sourceSets {
    main { java.srcDir("../maven/src/main/java") }
    test { java.srcDir("../maven/src/test/java") }
}

tasks.withType<JavaCompile>().configureEach {
    options.release.set(17)
    options.encoding = "UTF-8"
}

application {
    mainClass.set("com.example.iris.Main")
}

tasks.named<JavaExec>("run") {
    args(models)
}

tasks.test {
    useJUnitPlatform()
    systemProperty("models", models)
}
