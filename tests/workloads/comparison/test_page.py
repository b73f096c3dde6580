"""The page in a real browser: readable on a phone, in light and dark and on paper, without a complaint."""

import html as escaping
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from tests.record_factory import noisy, one_pod, two_pods, write_run
from workloads.comparison.records import read_runs
from workloads.comparison.report import build_report, html

pytestmark = pytest.mark.browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
)
PHONE_PX = 390

# What the probe measures inside of a frame as wide as a phone; a headless window can't be that narrow.
PROBE = """
<body style="margin:0"><iframe id="frame" width="{width}" height="6000" style="border:0" srcdoc="{page}"></iframe>
<pre id="found"></pre>
<script>
addEventListener("load", () => {{
  const page = document.getElementById("frame").contentDocument, root = page.documentElement;
  const scrolled = (element) => element.closest(".scroll") !== null;
  const found = {{
    scrollWidth: root.scrollWidth,
    sticksOut: [...page.querySelectorAll("body *")]
      .filter((element) => !scrolled(element) && element.getBoundingClientRect().right > {width} + 1)
      .map((element) => element.tagName + " " + element.textContent.trim().slice(0, 40)),
    headline: page.querySelector(".headline").textContent,
    plotWidths: [...page.querySelectorAll("figure svg")].map((svg) => svg.getBoundingClientRect().width),
    unresolved: [...page.querySelectorAll("figure svg *")]
      .filter((element) => page.defaultView.getComputedStyle(element).fill.includes("var(")).length,
    smallestText: Math.min(...[...page.querySelectorAll("figure svg text")]
      .map((text) => text.getBoundingClientRect().height)),
  }};
  document.getElementById("found").textContent = JSON.stringify(found);
}});
</script>
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of four arms, one of them INVALID and one with a long name."""
    folder = tmp_path_factory.mktemp("page")
    arms = (
        one_pod(step_s=noisy(1.1, steps=25, spread=0.03, seed=1)),
        two_pods(step_s=noisy(7.0, steps=25, spread=0.01, seed=2)),
        two_pods(arm="g6e12xl-4x4-tcp-hostnet-tuned", step_s=noisy(1.4, steps=25, spread=0.03, seed=3)),
        two_pods(arm="wrong-bytes", sent_per_step=9e6, step_s=noisy(1.5, steps=25, spread=0.03, seed=4)),
    )
    for made in arms:
        write_run(made, folder / "records", made.arm)
    file = folder / "report.html"
    file.write_text(html(build_report(read_runs([str(folder / "records")]))))
    return file


def chromium(folder: Path, file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: the page is not opened (apt-get install chromium)")
    return subprocess.run(
        [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", *arguments, file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


@pytest.fixture(scope="module")
def on_a_phone(page: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("phone")
    probe = folder / "probe.html"
    probe.write_text(PROBE.format(width=PHONE_PX, page=escaping.escape(page.read_text(), quote=True)))
    document = chromium(folder, probe, "--virtual-time-budget=4000", "--dump-dom").stdout
    found = re.search(r'<pre id="found">(.*?)</pre>', document, re.DOTALL)
    assert found, document[-500:]
    measured: dict[str, Any] = json.loads(escaping.unescape(found[1]))
    return measured


def test_a_phone_needs_no_sideways_scroll(on_a_phone: dict[str, Any]) -> None:
    assert on_a_phone["scrollWidth"] <= PHONE_PX
    assert on_a_phone["sticksOut"] == []


def test_plots_fill_a_phones_width_with_text_that_can_be_read(on_a_phone: dict[str, Any]) -> None:
    assert len(on_a_phone["plotWidths"]) == 5
    assert all(0.85 * PHONE_PX < width <= PHONE_PX for width in on_a_phone["plotWidths"])
    assert on_a_phone["smallestText"] >= 9
    assert on_a_phone["unresolved"] == 0


def test_the_headline_is_on_the_page(on_a_phone: dict[str, Any]) -> None:
    assert "takes 6.3" in on_a_phone["headline"]


def test_the_browser_has_nothing_to_complain_about(page: Path, tmp_path: Path) -> None:
    shown = chromium(tmp_path, page, "--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom")
    assert "</html>" in shown.stdout
    assert [line for line in shown.stderr.splitlines() if "CONSOLE" in line] == []


@pytest.mark.parametrize(
    ("scheme", "darkest", "lightest"), [("light", 0.85, 1.0), ("dark", 0.0, 0.25)], ids=["light", "dark"]
)
def test_each_colour_scheme_has_its_ground_and_is_not_blank(
    page: Path, tmp_path: Path, scheme: str, darkest: float, lightest: float
) -> None:
    picture = tmp_path / f"{scheme}.png"
    preferred = "--blink-settings=preferredColorScheme=0" if scheme == "dark" else "--force-color-profile=srgb"
    chromium(tmp_path, page, preferred, "--window-size=1280,2600", f"--screenshot={picture}")
    pixels = np.asarray(matplotlib.image.imread(picture))[:, :, :3]
    assert pixels.shape[:2] == (2600, 1280)
    assert darkest <= float(np.median(pixels)) <= lightest
    inked = np.abs(pixels - np.median(pixels, axis=(0, 1))).max(axis=2) > 0.3
    assert 0.01 < inked.mean() < 0.3
    # Text and plots reach down the page: no band of an eighth of it is empty.
    assert all(band.any() for band in np.array_split(inked, 8))


def test_it_prints(page: Path, tmp_path: Path) -> None:
    paper = tmp_path / "report.pdf"
    chromium(tmp_path, page, "--no-pdf-header-footer", f"--print-to-pdf={paper}")
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", paper.read_bytes()))
    assert 2 <= pages <= 8
