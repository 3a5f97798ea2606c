# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The web console in a real Chromium, on the server as it is distributed."""
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading

import pytest

import browser
from browser import Browser
from server import EXAMPLES, ROOT, Server, program, until

pytestmark = pytest.mark.skipif(browser.missing() is not None, reason=f"no browser: {browser.missing()}")
SHOTS = pathlib.Path(os.environ.get("NEREID_SCREENSHOTS", ROOT / "testing/conformance/target/screenshots"))
PAGES = ["overview", "models", "model/simple", "try/simple", "explain/iris", "services", "log", "api", "api/simple", "settings"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("console")
    for name in ("simple", "iris", "pool"):
        shutil.copytree(EXAMPLES / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def server(repository):
    server = Server(repository)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def window(server):
    window = Browser(f"http://{server.base}", SHOTS)
    yield window
    window.close()


def predict(server, value=1):
    body = {"inputs": [{"name": f"INPUT{i}", "shape": [1, 16], "datatype": "INT32", "data": [value] * 16} for i in (0, 1)]}
    return server.ask("POST", "/v2/models/simple/infer", json.dumps(body))


def plan(window, pattern):
    """Waits until the dialog says what an action will do."""
    window.until(lambda: re.search(pattern, window.text("dialog")), f"the dialog says {pattern}")


def test_every_page_opens_and_is_accessible(server, window):
    predict(server)
    for page in PAGES:
        window.open(page)
        window.find("main h1")
        window.until(lambda: "Loading" not in window.text(), f"{page} is loaded")
        if page == "model/simple":
            window.find("h2", "Configuration in effect")
        if page == "overview":
            window.find("#request-rate")
        found = window.violations()
        assert found == [], f"{page}: {found}"
        window.shot(page.replace("/", "-"))
    assert [e for e in window.errors() if "axe" not in e] == []


@pytest.mark.parametrize("width, dark", [(390, False), (1280, True), (390, True)])
def test_it_is_readable_on_a_phone_and_in_the_dark(server, width, dark):
    window = Browser(f"http://{server.base}", SHOTS, width=width, height=800, dark=dark)
    try:
        for page in ("overview", "models", "model/simple", "try/simple", "settings"):
            window.open(page)
            window.find("main h1")
            window.until(lambda: "Loading" not in window.text(), f"{page} is loaded")
            assert window.violations() == []
            # nothing makes the page itself wider than the window
            assert window.driver.execute_script("return document.documentElement.scrollWidth") <= width
            window.shot(f"{page.replace('/', '-')}-{width}{'-dark' if dark else ''}")
    finally:
        window.close()


def test_a_prediction_by_the_form_is_seen_in_the_figures(server, window):
    window.open("try/simple")
    window.set("#input-0", json.dumps([list(range(1, 17))]))
    window.set("#input-1", json.dumps([[1] * 16]))
    assert "curl" in window.text("#call")
    # the shown command works as it is
    shown = window.driver.execute_script("return document.querySelector('#call').textContent")
    answer = json.loads(subprocess.run(["sh", "-c", shown], capture_output=True, text=True, check=True, timeout=20).stdout)
    assert answer["outputs"][0]["data"] == list(range(2, 18))
    window.click("Predict")
    output = window.find('pre[data-output="OUTPUT0"]')
    assert json.loads(output.text) == [list(range(2, 18))]
    assert json.loads(window.find('pre[data-output="OUTPUT1"]').text) == [list(range(0, 16))]
    window.go("model/simple")
    window.says("Where a request's time goes")
    window.says("compute ")
    window.go("overview")
    window.until(lambda: window.text("#request-rate") not in ("", "0/s"), "the overview shows the request")
    window.find("main table a", "simple")


@pytest.mark.parametrize(
    "values, says",
    [
        ("[1, 2]", "has 2 values, and the shape [1,16] needs 16"),
        ("[1.5" + ", 1" * 15 + "]", "1.5, which is not INT32"),
        ("nonsense", "is not JSON"),
        ("[[1], [2, 3]]", "different lengths"),
    ],
)
def test_wrong_values_are_explained_before_they_are_sent(window, values, says):
    window.open("try/simple")
    window.set("#input-0", values)
    window.click("Predict")
    window.says(says, "[role=alert]")


def test_a_table_from_a_file_becomes_the_input(window, tmp_path):
    file = tmp_path / "flowers.csv"
    file.write_text("sepal length,sepal width,petal length,petal width\n5.1,3.5,1.4,0.2\n6.7,3.0,5.2,2.3\n")
    window.open("try/iris")
    field = window.find("textarea")
    window.driver.find_element("css selector", "input[type=file]").send_keys(str(file))
    window.until(lambda: "6.7" in field.get_attribute("value"), "the file is read")
    window.click("Predict")
    window.find("pre[data-output]")
    assert "[2" in window.text("[aria-live]")


def test_a_model_is_unloaded_and_loaded_by_clicks(server, window):
    window.open("models")
    window.type("#model-search", "pool")
    window.click("Unload pool")
    plan(window, r"will unload\s+1")
    window.click("Cancel", "dialog")
    assert server.ask("GET", "/v2/models/pool/ready")[0] == 200
    window.click("Unload pool")
    window.click("Unload", "dialog")
    window.find(".state", "unloaded")
    assert server.ask("GET", "/v2/models/pool/ready")[0] != 200
    window.click("Load pool")
    plan(window, r"will load\s+1")
    window.click("Load", "dialog")
    window.find(".state", "available")
    assert server.ask("GET", "/v2/models/pool/ready")[0] == 200


def test_a_second_version_is_loaded_and_rolled_back(server, window, repository):
    shutil.copytree(repository / "simple" / "1", repository / "simple" / "2")
    window.open("model/simple")
    window.click("Reload")
    plan(window, r"will load\s+2[\s\S]*will unload\s+1")
    window.click("Reload", "dialog")
    window.says("The model is loaded.")
    until(lambda: json.loads(predict(server)[2]).get("model_version") == "2", "version 2 answers")
    window.click("Versions …")
    boxes = window.until(lambda: b if len(b := window.all("dialog input[type=checkbox]")) == 2 else None, "both versions are offered")
    assert [b.is_selected() for b in boxes] == [False, True]
    for box in boxes:
        box.click()
    plan(window, r"will load\s+1")
    window.click("Apply", "dialog")
    window.says("Version 1 serves.")
    until(lambda: json.loads(predict(server)[2]).get("model_version") == "1", "version 1 answers")
    assert window.errors() == []


def test_a_broken_version_says_why(server, window, repository):
    folder = repository / "iris" / "2"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"not a model")
    window.open("model/iris")
    window.click("Reload")
    window.click("Reload", "dialog")
    window.says("load failed", "[role=alert]")
    window.find(".state", "failed")
    shutil.rmtree(folder)


def test_the_log_shows_what_happens(server, window):
    window.open("log")
    window.find(".log li")
    window.click("Pause")
    server.ask("POST", "/v2/repository/models/pool/unload", "{}")
    server.ask("POST", "/v2/repository/models/pool/load", "{}")
    window.until(lambda: re.search(r"Go on \([1-9]", window.text("main")), "records wait while the page holds")
    window.click(re.search(r"Go on \(\d+ new\)", window.text("main")).group(0))
    window.says("pool", ".log")


def test_settings_say_where_they_come_from_and_change(server, window):
    window.open("settings")
    window.says("command line")
    window.find("#verbose")
    window.set("#verbose", "1")
    window.driver.find_element("css selector", "form button.primary").click()
    window.says("in force until the server ends")
    assert json.loads(server.ask("GET", "/v2/logging")[2])["log_verbose_level"] == 1
    server.ask("POST", "/v2/logging", json.dumps({"log_verbose_level": 0}))


def test_an_explanation_is_drawn(window):
    window.open("explain/iris")
    window.set("#explain-rows", "[[5.1, 3.5, 1.4, 0.2]]")
    window.set("#explain-background", "[[6, 3, 4, 1], [5, 3, 2, 0.5], [7, 3, 5, 2]]")
    window.click("Explain", "form")
    window.find("svg.bars rect")
    window.says("prediction")


def test_the_keyboard_is_enough(window):
    """From the top of the page to another page and to a button, with Tab and Enter only."""
    from selenium.webdriver.common.keys import Keys

    window.open("overview")
    window.find("nav a")
    active = lambda: window.driver.switch_to.active_element
    window.driver.find_element("css selector", "body").send_keys(Keys.TAB)
    assert "To the content" in active().get_attribute("textContent")
    for _ in range(12):
        active().send_keys(Keys.TAB)
        if active().text == "Models":
            break
    active().send_keys(Keys.ENTER)
    window.find("h1", "Models")
    window.until(lambda: active().tag_name == "main", "the focus is at the content")
    for _ in range(20):
        active().send_keys(Keys.TAB)
        if (active().get_attribute("aria-label") or "").startswith("Reload "):
            break
    active().send_keys(Keys.ENTER)
    window.find("dialog")
    active().send_keys(Keys.ESCAPE)
    window.until(lambda: not window.all("dialog"), "the dialog is closed")


def test_a_restart_of_the_server_is_survived(repository):
    server = Server(repository)
    port = str(server.port)
    window = Browser(f"http://{server.base}", SHOTS)
    try:
        window.open("overview")
        window.find("#request-rate")
        assert server.stop() == 0
        window.says("connecting again")
        again = subprocess.Popen([program(), "serve", str(repository), "--port", port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            # One look at the page for both: a page that is drawn between two looks has neither text in the first one.
            connected = lambda text: "connecting again" not in text and "Models serving" in text
            window.until(lambda: connected(window.text()), "the page has found the server again", 60)
            server.process = again
            predict(server)
            window.until(lambda: window.text("#request-rate") not in ("", "0/s"), "new requests are seen")
        finally:
            again.terminate()
            again.wait(30)
    finally:
        window.close()


def keys(folder, **roles):
    made = {}
    for name, role in roles.items():
        said = subprocess.run([program(), "keys", "create", name, "--role", role, "--file", str(folder / "keys.json")], capture_output=True, text=True, check=True)
        made[name] = re.search(r"nrd_\S+", said.stdout + said.stderr).group(0)
    return made


def test_signing_in_with_keys(repository, tmp_path):
    made = keys(tmp_path, watcher="viewer", ops="manager", app="client")
    server = Server(repository, "--api-keys", tmp_path / "keys.json")
    window = Browser(f"http://{server.base}", SHOTS)
    try:
        window.open("models")
        window.find("h1", "Sign in")
        assert window.violations() == []
        window.type("#key", "nrd_wrong_wrong")
        window.click("Sign in")
        window.says("not valid", "[role=alert]")
        window.type("#key", made["app"])
        window.click("Sign in")
        window.says("may not open the console", "[role=alert]")
        # a viewer looks, and cannot load
        window.type("#key", made["watcher"])
        window.click("Sign in")
        window.find("td", "simple")
        window.says("needs the permission manage")
        assert not [b for b in window.all("button") if "Unload" in b.text]
        cookie = window.driver.get_cookie("nereid-session")
        assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and not cookie["secure"] and cookie["path"] == "/"
        assert made["watcher"] not in json.dumps(window.driver.get_cookies()) + window.driver.current_url
        assert window.driver.execute_script("return localStorage.length + sessionStorage.length") == 0
        window.go("log")
        window.says("configure-observe")
        window.click("Sign out")
        window.find("h1", "Sign in")
        assert server.ask("GET", "/console/api/session", headers={"cookie": f"nereid-session={cookie['value']}"})[0] == 401
        # a manager may
        window.type("#key", made["ops"])
        window.click("Sign in")
        window.go("models")
        window.click("Unload pool")
        window.click("Unload", "dialog")
        window.find(".state", "unloaded")
        cookie = window.driver.get_cookie("nereid-session")["value"]
        # with the cookie and without the token of the page, as another page would send it, nothing changes
        status, _, body = server.ask("POST", "/v2/repository/models/pool/load", "{}", {"cookie": f"nereid-session={cookie}"})
        assert status == 403 and b"CSRF" in body
        assert server.ask("GET", "/v2/models", headers={"cookie": f"nereid-session={cookie}"})[0] == 200
        # a key that is revoked ends its sessions
        subprocess.run([program(), "keys", "revoke", "ops", "--file", str(tmp_path / "keys.json")], check=True, capture_output=True)
        window.go("overview")
        until(lambda: server.ask("GET", "/console/api/session", headers={"cookie": f"nereid-session={cookie}"})[0] == 401, "the session has ended")
    finally:
        window.close()
        assert server.stop() == 0


def test_recorded_requests_are_examples(repository, tmp_path):
    config = tmp_path / "models.config"
    config.write_text(f"""model_config_list {{ config {{
  name: "simple" base_path: "{repository}/simple" model_platform: "onnxruntime"
  logging_config {{ log_collector_config {{ type: "tfrecord" filename_prefix: "{tmp_path}/requests" }}
    sampling_config {{ sampling_rate: 1 }} }} }} }}""")
    server = Server("--model_config_file", config)
    window = Browser(f"http://{server.base}", SHOTS)
    try:
        for value in (3, 4):
            assert predict(server, value)[0] == 200
        until(lambda: len(json.loads(server.ask("GET", "/console/api/models/simple/recorded")[2])["examples"]) == 2, "both are recorded")
        window.open("try/simple")
        window.find("#recorded option[value='1']").click()
        window.until(lambda: json.loads(window.find("#input-0").get_attribute("value")) == [3] * 16, "the first request is in the form")
        window.click("Predict")
        assert json.loads(window.find('pre[data-output="OUTPUT0"]').text) == [[6] * 16]
        # A model that is not recorded has none, and the form has no choice of them.
        assert json.loads(server.ask("GET", "/console/api/models/other/recorded")[2]) == {"examples": []}
    finally:
        window.close()
        assert server.stop() == 0


def test_without_a_permission_nothing_is_shown(repository):
    """On an address that others can reach, and without keys, the console is closed."""
    server = Server(repository, "--host", "0.0.0.0")
    window = Browser(f"http://127.0.0.1:{server.port}", SHOTS)
    try:
        window.open()
        window.says("--api-keys", "[role=alert]")
        assert server.ask("GET", "/console/api/live")[0] == 403
    finally:
        window.close()
        assert server.stop() == 0


def test_switched_off_there_is_no_console(repository):
    server = Server(repository, "--console=off")
    try:
        assert server.ask("GET", "/console/")[0] == 404
        assert server.ask("GET", "/", headers={"accept": "text/html"})[0] == 200
    finally:
        assert server.stop() == 0


def test_browsers_are_led_to_it_and_other_clients_are_not(server):
    browser_accepts = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
    status, headers, _ = server.ask("GET", "/", headers={"accept": browser_accepts})
    assert (status, headers["location"]) == (302, "console/")
    for accept in ("*/*", "application/json", "application/json, text/html;q=0.5", "text/html;q=0"):
        assert server.ask("GET", "/", headers={"accept": accept})[0] == 200, accept
    assert server.ask("GET", "/")[2] == b'{"status":"alive"}'
    status, headers, _ = server.ask("GET", "/console")
    assert (status, headers["location"]) == (308, "console/")
    policy = server.ask("GET", "/console/")[1]["content-security-policy"]
    assert "unsafe" not in policy and "http" not in policy
    for path in ("/console/../api", "/console/js/..%2fmain.js", "/console/package-info.class", "/console/js/"):
        assert server.ask("GET", path)[0] == 404, path


class Proxy:
    """A reverse proxy that serves the server below a path, as an Ingress does."""

    def __init__(self, target, prefix):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self):
                if not self.path.startswith(prefix + "/"):
                    self.send_error(404)
                    return
                connection = http.client.HTTPConnection(target, timeout=60)
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                connection.request(self.command, self.path[len(prefix):], body, {k: v for k, v in self.headers.items() if k.lower() not in ("host", "origin")})
                reply = connection.getresponse()
                self.send_response(reply.status)
                for name, value in reply.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length", "date"):
                        self.send_header(name, value)
                self.send_header("connection", "close")
                self.end_headers()
                try:
                    while piece := reply.read1(65536):
                        self.wfile.write(piece)
                        self.wfile.flush()
                except OSError:
                    pass  # the browser has closed a stream
                finally:
                    connection.close()
                    self.close_connection = True

            do_GET = do_POST = do_PATCH = do_DELETE = forward

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_port}{prefix}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def test_it_works_behind_a_path_prefix(repository, tmp_path):
    made = keys(tmp_path, ops="manager")
    server = Server(repository, "--api-keys", tmp_path / "keys.json")
    proxy = Proxy(server.base, "/ml/nereid")
    window = Browser(proxy.base, SHOTS)
    try:
        window.open("overview", console="console")
        window.find("h1", "Sign in")
        window.type("#key", made["ops"])
        window.click("Sign in")
        window.find("#request-rate")
        assert window.driver.get_cookie("nereid-session")["path"] == "/ml/nereid/"
        window.go("try/simple")
        window.click("Predict")
        window.find('pre[data-output="OUTPUT0"]')
        assert "/ml/nereid/v2/models/simple" in window.text("#call")
    finally:
        window.close()
        proxy.server.shutdown()
        assert server.stop() == 0


def test_a_thousand_models_stay_fluid(tmp_path):
    for i in range(1000):
        folder = tmp_path / f"model-{i:04}" / "1"
        folder.mkdir(parents=True)
        os.link(EXAMPLES / "simple" / "1" / "model.onnx", folder / "model.onnx")
    server = Server(tmp_path, "--model-control-mode=explicit", "--load-model=model-0007")
    window = Browser(f"http://{server.base}", SHOTS)
    try:
        window.open("models")
        window.says("1000 models")
        assert len(window.all(".models tbody tr")) < 60
        window.driver.execute_script("document.querySelector('.models').scrollTop = 1e9")
        window.find(".models td", "model-0999")
        assert len(window.all(".models tbody tr")) < 60
        # drawing the table again takes a part of a frame's time, by the browser's own count of long tasks
        window.driver.execute_script(
            "window.long = []; new PerformanceObserver(l => window.long.push(...l.getEntries().map(e => e.duration))).observe({entryTypes: ['longtask']});")
        for i in range(30):
            window.driver.execute_script("document.querySelector('.models').scrollTop = arguments[0]", i * 1200)
        window.type("#model-search", "model-0007")
        window.says("1 of 1000 models")
        window.find(".state", "available")
        print("long tasks in ms:", window.driver.execute_script("return window.long"))
    finally:
        window.close()
        assert server.stop() == 0


def test_a_canary_is_moved_and_promoted(tmp_path):
    server = Server("--control", "--control-directory", tmp_path / "control", "--control-port", "0")
    api = until(lambda: next((m.group(1) for line in server.lines if (m := re.search(r"control API on http://(\S+)", line))), None), "the control API is open")
    environment = {**os.environ, "NEREID_CONTROL": f"http://{api}"}
    apply = lambda text: subprocess.run([program(), "apply", "-f", "-"], input=text, text=True, check=True, capture_output=True, env=environment)
    service = lambda uri, extra="": f"""
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: flowers, namespace: default}}
spec:
  predictor:
    {extra}
    model:
      modelFormat: {{name: onnx}}
      storageUri: file://{uri}
"""
    graph = """
apiVersion: serving.kserve.io/v1alpha1
kind: InferenceGraph
metadata: {name: twice, namespace: default}
spec:
  nodes:
    root: {routerType: Sequence, steps: [{serviceName: flowers}, {nodeName: split}]}
    split: {routerType: Splitter, steps: [{serviceName: flowers, weight: 30}, {serviceName: flowers, weight: 70}]}
"""
    first, second = tmp_path / "one", tmp_path / "two"
    for folder in (first, second):
        shutil.copytree(EXAMPLES / "iris" / "1", folder)
    window = Browser(f"http://{server.base}", SHOTS)
    try:
        apply(service(first))
        window.open("services")
        window.find(".state", "ready", timeout=60)
        apply(service(second, "canaryTrafficPercent: 10"))
        apply(graph)
        window.go("services/default/flowers")
        window.until(lambda: "flowers-predictor-00002 10 %" in window.text(), "the canary has a tenth", 60)
        assert window.violations() == []
        window.shot("service")
        window.set("#canary", "40")
        window.says("40 %", "#canary-value")
        window.click("Apply …")
        window.says("canaryTrafficPercent", "dialog")
        window.click("Cancel", "dialog")
        shares = lambda: {t["revisionName"]: t["percent"] for t in json.loads(subprocess.run(
            [program(), "get", "isvc", "flowers", "-o", "json"], capture_output=True, text=True, check=True, env=environment).stdout)["status"]["components"]["predictor"]["traffic"] if "percent" in t}
        assert shares()["flowers-predictor-00002"] == 10
        window.click("Apply …")
        window.click("Apply", "dialog")
        window.until(lambda: "flowers-predictor-00002 40 %" in window.text(), "the share is 40", 60)
        assert shares()["flowers-predictor-00002"] == 40
        window.says("Events")
        window.click("Promote …")
        window.click("Apply", "dialog")
        window.until(lambda: "flowers-predictor-00002 100 %" in window.text(), "the canary has all", 60)
        window.go("services/graph/default/twice")
        window.find("svg.bars rect.node")
        assert len(window.all("svg.bars rect.node")) == 3 and "70 %" in window.text("svg.bars")
        window.shot("graph")
    finally:
        window.close()
        assert server.stop() == 0
