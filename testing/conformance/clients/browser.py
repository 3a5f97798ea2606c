# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A real Chromium, driven by WebDriver: opens pages of the console, looks at them, and checks them with axe-core."""
import os
import pathlib
import shutil
import time

import axe_core_python
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

AXE = (pathlib.Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
# What the rules of axe-core of WCAG 2.1 A and AA find is a violation, and none is allowed.
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def missing():
    """Why there is not a browser here; None if there is one."""
    for name in ("chromium", "chromedriver"):
        if not shutil.which(name):
            return f"{name} is not on the PATH (Debian: apt-get install chromium chromium-driver)"
    return None


class Browser:
    """A window. `base` is the address of the server; `screenshots` is a folder."""

    def __init__(self, base, screenshots, width=1280, height=900, dark=False):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--disable-dev-shm-usage", "--disable-gpu", f"--window-size={width},{height}", "--force-device-scale-factor=1"):
            options.add_argument(argument)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        self.base = base
        self.screenshots = screenshots

    def open(self, page="", console="console/"):
        self.driver.get("about:blank")
        self.driver.get(f"{self.base}/{console}#/{page}")

    def go(self, page):
        """Another page of the console that is open."""
        self.driver.execute_script("location.hash = arguments[0]", f"#/{page}")

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def find(self, css, text=None, timeout=15):
        """Waits for an element that is shown, with a text in it."""
        def found():
            for element in self.all(css):
                if element.is_displayed() and (text is None or text in element.text):
                    return element
            return None
        return self.until(found, f"there is {css} with {text!r}" if text else f"there is {css}", timeout)

    def button(self, text, within="body", timeout=15):
        def found():
            for element in self.all(f"{within} button"):
                if element.is_displayed() and element.is_enabled() and (element.text == text or element.get_attribute("aria-label") == text):
                    return element
            return None
        return self.until(found, f"there is the button {text!r}", timeout)

    def click(self, text, within="body"):
        for _ in range(20):
            try:
                button = self.button(text, within)
                self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
                button.click()
                return
            except StaleElementReferenceException:
                continue  # the page has drawn it again
        raise AssertionError(f"the button {text!r} does not hold still")

    def type(self, css, text):
        element = self.find(css)
        element.clear()
        element.send_keys(text)

    def set(self, css, value):
        """Sets the value of a field at once, as pasting does."""
        self.driver.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}));"
            " arguments[0].dispatchEvent(new Event('change', {bubbles: true}));", self.find(css), value)

    def text(self, css="main"):
        try:
            return self.driver.find_element(By.CSS_SELECTOR, css).text
        except (NoSuchElementException, StaleElementReferenceException):
            return ""

    def until(self, condition, what, timeout=15):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            try:
                value = condition()
            except StaleElementReferenceException:
                value = None
            if value:
                return value
            time.sleep(0.05)
        self.shot("failed")
        raise AssertionError(f"within {timeout} s it did not happen that {what}; the page says:\n{self.text('body')[:2000]}")

    def says(self, text, css="main", timeout=15):
        self.until(lambda: text in self.text(css), f"{css} says {text!r}", timeout)

    def shot(self, name):
        if self.screenshots:
            self.screenshots.mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(self.screenshots / f"{name}.png"))

    def violations(self):
        """What axe-core finds on the page as it is now."""
        # By the protocol of the browser: the page's own policy would not let the script in.
        self.driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
        self.driver.execute_script(AXE)
        result = self.driver.execute_async_script("const done = arguments[1]; axe.run(document, arguments[0]).then(r => done(r.violations))", RULES)
        return [f"{v['id']}: {v['help']}: {[n['html'][:160] for n in v['nodes'][:3]]}" for v in result]

    def errors(self):
        """What the browser has complained about since the last call: scripts, policies, requests."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def close(self):
        self.driver.quit()
