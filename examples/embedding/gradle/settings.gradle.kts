rootProject.name = "iris"
