"""A checker played in headless Chromium: keyboard, drafts, seal, paper, a narrow screen."""

from __future__ import annotations

import base64
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_desk import made, queue, served, server

from sacro_deltab.certificate.review import load_record
from sacro_deltab.desk.server import DeskServer

MOST_DECISIONS, MOST_SHEETS = 12, 12


@pytest.fixture
def browser() -> Iterator[Any]:
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or chromium is None:
        pytest.skip("no chromium with its driver on this machine")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update", "--window-size=1280,900"),
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=Service(driver))
    yield opened
    opened.quit()


def test_a_checker_decides_the_demo(browser: Any, server: DeskServer, queue: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(server.url)
    assert "token" not in browser.current_url
    browser.find_element(By.LINK_TEXT, "request-1").click()
    forms = browser.find_elements(By.CSS_SELECTOR, "form.vote[data-item]")
    questions = {q for file in load_record(queue / "request-1").questions for q in file.questions}
    shown = browser.find_element(By.TAG_NAME, "main").text
    assert all(" ".join(question.split()) in " ".join(shown.split()) for question in questions)
    for number in range(len(forms)):  # keys alone: next, accept, say why, leave the text
        ActionChains(browser).send_keys("j").send_keys("a").perform()
        text = forms[number].find_element(By.TAG_NAME, "textarea")
        if not text.get_attribute("value"):
            ActionChains(browser).send_keys("Nobody can be known from it.").perform()
        browser.execute_script("document.activeElement.blur()")
        state = forms[number].find_element(By.CLASS_NAME, "state")
        WebDriverWait(browser, 20).until(lambda _, state=state: state.text == "saved")
    assert browser.find_element(By.ID, "open-items").text == "0"
    assert len(forms) <= MOST_DECISIONS
    browser.refresh()  # the drafts are there again
    assert len(browser.find_elements(By.CSS_SELECTOR, "form[data-item] input:checked")) == len(forms)
    browser.find_element(By.CSS_SELECTOR, "form[action$=seal] button").click()
    WebDriverWait(browser, 60).until(lambda b: "sealed as checker1" in b.find_element(By.TAG_NAME, "body").text)
    assert browser.get_log("browser") == []


def test_on_paper_on_a_narrow_screen_and_in_the_dark(browser: Any, server: DeskServer) -> None:
    browser.get(server.url)
    browser.get(f"http://{server.host}/request/request-1")
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "paperWidth": 8.27,
                           "paperHeight": 11.69, "marginTop": 0.3, "marginBottom": 0.3})["data"])  # fmt: skip
    sheets = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 1 < sheets <= MOST_SHEETS, sheets
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", ground)[:3])) < 60


__all__ = ["made", "queue", "served", "server", "threading"]
