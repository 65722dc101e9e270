"""The report in a real browser: what is drawn, zoomed, filtered and read by keys; no error, no request."""

import pytest
import tracesets
from browser import Browser
from test_report import ODD, hostile

from drapps.report import write_report


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "one.html"
    write_report([("run.drtrace", tracesets.busy(120))], path)
    return path


def is_clean(browser, path):
    assert browser.errors == []
    return browser.requests == [f"file://{path}"]


def test_the_browser_tells_on_a_bad_page(browser, tmp_path):
    """What is_clean relies on."""
    path = tmp_path / "bad.html"
    path.write_text("<img src='http://127.0.0.1:9/x.png'><script>console.error('seen'); throw Error('thrown')</script>")
    browser.open(path)
    assert "http://127.0.0.1:9/x.png" in browser.requests and len(browser.errors) >= 2


def view(browser):
    return browser.run("drappsTimelines[0].view")


def place_of(browser, name, part):
    """A place in the plot of a panel, at a part of its width."""
    return browser.run(f"""(() => {{ const plot = document.querySelector(".p-{name} .plot");
        plot.scrollIntoView({{block: "center"}});
        const box = plot.getBoundingClientRect(); const left = box.left + 46, right = box.right - 8;
        return [left + (right - left) * {part}, box.top + 15] }})()""")


def drag(browser, begin, end):
    browser.mouse("mouseMoved", *begin)
    browser.mouse("mousePressed", *begin, button="left", clickCount=1)
    browser.mouse("mouseMoved", *end, button="left", buttons=1)
    browser.mouse("mouseReleased", *end, button="left", clickCount=1)
    browser.settle()


@pytest.mark.parametrize("width, dark", [(400, False), (400, True), (1400, False), (1400, True)])
def test_everything_is_drawn(browser, page, width, dark):
    browser.open(page, width, dark=dark)
    assert is_clean(browser, page)
    for panel in (
        "lane",
        "wait",
        "rate",
        "cpu",
        "batches",
        "queues",
        "memory",
        "io",
        "pressure",
        "power",
        "reward",
        "workers",
    ):
        assert browser.run(f"document.querySelectorAll('.p-{panel} .plot path').length") > 0, panel
    assert browser.run("document.querySelectorAll('.p-cpu path.fill').length") == 3
    painted = """(() => { const c = document.querySelector(".p-cpus canvas");
        return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some(v => v) })()"""
    assert browser.run(painted)
    assert browser.run("document.querySelectorAll('svg.distribution rect.bar').length") > 10
    assert browser.run("document.documentElement.scrollWidth") <= width  # nothing sticks out
    colour = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(15, 19, 24)") == dark


def test_no_path_has_a_wrong_number(browser, page):
    browser.open(page)
    script = """Array.from(document.querySelectorAll("svg *")).filter(node =>
        Array.from(node.attributes).some(a => /NaN|Infinity|undefined/.test(a.value))).length"""
    assert browser.run(script) == 0


def test_drag_zooms_and_double_click_resets(browser, page):
    browser.open(page)
    drag(browser, place_of(browser, "cpu", 0.25), place_of(browser, "cpu", 0.5))
    assert view(browser) == pytest.approx([119.9 / 4, 119.9 / 2], abs=0.3)
    assert browser.run("document.querySelector('.range').value").startswith("0:30")
    assert browser.run("document.querySelector('.brush').hidden")
    middle = place_of(browser, "cpu", 0.5)
    for clicks in (1, 2):
        browser.mouse("mousePressed", *middle, button="left", clickCount=clicks)
        browser.mouse("mouseReleased", *middle, button="left", clickCount=clicks)
    assert view(browser) == pytest.approx([0, 119.9])
    assert is_clean(browser, page)


def test_wheel_zooms_with_ctrl_and_scrolls_without(browser, page):
    browser.open(page)
    at = place_of(browser, "cpu", 0.5)
    browser.mouse("mouseWheel", *at, deltaX=0, deltaY=-100, modifiers=2)
    browser.settle()
    a, b = view(browser)
    assert b - a == pytest.approx(0.8 * 119.9) and a == pytest.approx(0.1 * 119.9, abs=0.3)
    browser.mouse("mouseWheel", *at, deltaX=0, deltaY=-100)
    assert view(browser) == [a, b]


def test_keys(browser, page):
    browser.open(page)
    browser.run("document.querySelector('.panels').focus()")
    browser.key("+")
    assert view(browser) == pytest.approx([119.9 / 4, 119.9 * 3 / 4])
    browser.key("ArrowRight")
    assert view(browser)[0] == pytest.approx(119.9 / 4 + 119.9 / 10)
    browser.key("0")
    assert view(browser) == pytest.approx([0, 119.9])
    for _ in range(40):
        browser.key("+")
    browser.settle()
    a, b = view(browser)
    assert b - a == pytest.approx(0.05) and is_clean(browser, page)


def test_buttons(browser, page):
    browser.open(page)
    for button, length in (("in", 0.5), ("in", 0.25), ("out", 0.5), ("reset", 1)):
        browser.run(f"document.querySelector('[data-do={button}]').click()")
        a, b = view(browser)
        assert b - a == pytest.approx(119.9 * length)


def test_hover_tells_values(browser, page):
    browser.open(page)
    browser.mouse("mouseMoved", *place_of(browser, "cpu", 0.57))
    others = browser.run("document.querySelectorAll('.p-cpu output')[1].value")
    assert float(others) == pytest.approx(2.4, abs=0.6)
    assert browser.run("document.querySelector('.p-workers output').value") == "4"
    assert "%" in browser.run("document.querySelector('.p-wait output').value")
    browser.mouse("mouseMoved", 1, 1)
    assert browser.run("document.querySelectorAll('.p-cpu output')[1].value") == ""


def test_hover_tells_reasons(browser, page):
    browser.open(page)
    time = browser.run("drappsTimelines[0].data.decisions.find(d => d[1])[0]")
    browser.mouse("mouseMoved", *place_of(browser, "lane", time / 119.9))
    assert not browser.run("document.querySelector('.tip').hidden")
    assert "CPUs free: workers 1 -> 3" in browser.run("document.querySelector('.tip').textContent")


def rows(browser):
    return browser.run("document.querySelectorAll('.decisions tbody tr:not([hidden])').length")


def change(browser, field, setting):
    browser.run(f"""(() => {{ const field = document.querySelector(".filter").elements["{field}"];
        {setting}; field.dispatchEvent(new Event("input", {{bubbles: true}})) }})()""")


def test_decisions_are_filtered(browser, page):
    browser.open(page)
    changes = browser.run("drappsTimelines[0].data.decisions.filter(d => d[1]).length")
    assert rows(browser) == changes > 0  # only changes, at first
    change(browser, "changes", "field.checked = false")
    assert rows(browser) == 120
    change(browser, "bound", "field.value = 'others'")
    assert rows(browser) == browser.run("drappsTimelines[0].data.decisions.filter(d => d[3] == 'others').length") == 30
    change(browser, "text", "field.value = 'no such reason'")
    assert rows(browser) == 0 and browser.run("document.querySelector('.filter output').value") == "0 of 120"


def test_a_decision_leads_to_its_time(browser, page):
    browser.open(page)
    browser.run("document.querySelector('.decisions tbody tr:not([hidden]) button').click()")
    browser.settle()
    time = browser.run("drappsTimelines[0].data.decisions.find(d => d[1])[0]")
    assert view(browser) == pytest.approx([time - 5, time + 5])


def test_several_runs(browser, tmp_path):
    path = tmp_path / "three.html"
    write_report([("a", tracesets.busy(20)), ("b", tracesets.steady()), ("c", tracesets.busy(20, 2))], path)
    browser.open(path)
    assert browser.run("document.querySelectorAll('svg.pareto circle').length") == 3
    drawn = "Array.from(document.querySelectorAll('.run'), run => run.querySelectorAll('.p-cpu path').length)"
    assert browser.run(drawn) == [3, 0, 0]  # the others when they are opened
    browser.run("document.querySelectorAll('details.run')[1].open = true")
    browser.settle()
    assert browser.run(drawn)[1] == 2 and is_clean(browser, path)


def test_two_runs_are_side_by_side_on_a_telephone(browser, tmp_path):
    path = tmp_path / "two.html"
    write_report([("a.drtrace", tracesets.busy(20)), ("b.drtrace", tracesets.steady())], path)
    browser.open(path, 400)
    assert browser.run("(t => t.scrollWidth - t.clientWidth)(document.querySelector('.compare .scroll'))") == 0


def test_hostile_names_run_nothing(browser, tmp_path):
    path = tmp_path / "hostile.html"
    write_report([("</title><script>alert(1)</script>", hostile())], path)
    browser.open(path)
    assert is_clean(browser, path) and browser.run("document.images.length") == 0
    assert browser.run("document.scripts.length") == 2
    assert "onerror=alert" in browser.run("document.querySelector('.keys td').textContent")
    browser.run("document.body.appendChild(document.createElement('script')).textContent = 'window.was_run = 1'")
    assert browser.run("window.was_run") is None  # the policy of the page refuses even that


@pytest.mark.parametrize("name", ODD)
def test_odd_traces(browser, tmp_path, name):
    path = tmp_path / "odd.html"
    write_report([(name, ODD[name]())], path)
    browser.open(path, 700)
    assert is_clean(browser, path)
    browser.run("drappsTimelines[0] && drappsTimelines[0].zoom(0.5)")
    browser.settle()
    assert is_clean(browser, path)


def test_print(browser, page):
    """As a PDF on paper: it is not empty, and the tools of the screen are not on it."""
    browser.open(page)
    assert len(browser.command("Page.printToPDF", printBackground=True)["data"]) > 20_000
    browser.command("Emulation.setEmulatedMedia", media="print")
    assert browser.run("getComputedStyle(document.querySelector('.tools')).display") == "none"
    browser.command("Emulation.setEmulatedMedia", media="")
