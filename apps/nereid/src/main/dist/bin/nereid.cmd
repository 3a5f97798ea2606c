@echo off
rem Starts Nereid from an unpacked distribution on Windows. It needs Java 17 or later: NEREID_JAVA_HOME, JAVA_HOME, or java on the
rem PATH. NEREID_JAVA_OPTS adds JVM flags.
setlocal
set "HERE=%~dp0.."
set "JAVA=java"
if defined JAVA_HOME set "JAVA=%JAVA_HOME%\bin\java"
if defined NEREID_JAVA_HOME set "JAVA=%NEREID_JAVA_HOME%\bin\java"
set "CLASSES=%HERE%\lib\*"
if "%~1"=="operator" set "CLASSES=%CLASSES%;%HERE%\lib\kubernetes\*"
if "%~1"=="gateway" set "CLASSES=%CLASSES%;%HERE%\lib\kubernetes\*"
set ORT_DISABLE_TELEMETRY=1
if not defined TF_CPP_MIN_LOG_LEVEL set TF_CPP_MIN_LOG_LEVEL=2
"%JAVA%" -Xms64m -XX:NewSize=40m -XX:MaxInlineLevel=22 -XX:+UseParallelGC -XX:+ExitOnOutOfMemoryError -XX:-UsePerfData ^
    "-Dio.netty.leakDetection.level=disabled" "-Dnereid.home=%HERE%" %NEREID_JAVA_OPTS% -cp "%CLASSES%" io.nereid.app.Main %*
exit /b %ERRORLEVEL%
