"""The console in a real Chromium: everything on its pages."""

from __future__ import annotations

import re
from typing import Final

import pytest
from playwright.sync_api import expect

from console.browsing import add, row
from console.conftest import ConsoleNode, Look, OpenNode

pytestmark = pytest.mark.slow

HOSTILE: Final = b"\xff<img src=x onerror=alert(1)>'\"&amp;"
HOSTILE_SHOWN: Final = "\\xff<img src=x onerror=alert(1)>'\"&amp;"
PHONE: Final = {"width": 360, "height": 740}


# --- display ----------------------------------------------------------------------------------------------------------


def test_names_and_bodies_are_never_html(open_node: OpenNode, look: Look) -> None:
    node = open_node("--http-actions", "yes")
    add(node, HOSTILE, body="<script>alert(2)</script>\n<b>bold</b>")
    page = look(node)
    link = page.locator("#queues a")
    expect(link).to_have_text(HOSTILE_SHOWN)
    link.click()
    expect(page.locator("#queue-title")).to_have_text(HOSTILE_SHOWN)
    page.locator("#jobs button.link").click()
    expect(page.locator("#jobs pre")).to_have_text("<script>alert(2)</script>\n<b>bold</b>")
    page.get_by_role("button", name="Input paused").click()
    expect(page.locator("#confirm-title")).to_have_text(f"Pause input: {HOSTILE_SHOWN}")
    page.get_by_role("button", name="Pause input").click()
    expect(page.locator("#queue-title .chip")).to_have_text("input paused")
    assert node.call("PAUSE", HOSTILE, "state") == b"in"
    assert page.locator("main img, main script, main b").count() == 0


def test_queues_can_be_searched(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    for name in ("mail", "mail-retry", "billing"):
        add(node, name)
    page = look(node)
    expect(page.locator("#queues tbody tr")).to_have_count(3)
    page.get_by_role("searchbox").fill("mail")
    expect(page.locator("#queues tbody tr")).to_have_count(2)
    page.get_by_role("searchbox").fill("*ing")
    expect(page.locator("#queues a")).to_have_text(["billing"])
    page.get_by_role("searchbox").fill("nothing")
    expect(page.locator("#queues-note")).to_have_text("No queue matches.")
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Sort").select_option("name")
    expect(page.locator("#queues a")).to_have_text(["billing", "mail", "mail-retry"])


def test_jobs_in_all_states_are_shown(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    jobs = add(node, "mail", 25)
    node.call("GETJOB", "COUNT", 2, "FROM", "mail")
    page = look(node, "#queue=mail")
    expect(page.locator("#jobs-note")).to_have_text("20 shown")
    expect(page.locator("#jobs tbody tr").first.locator("button")).to_have_attribute("title", jobs[2])
    page.get_by_label("Show").select_option("youngest")
    expect(page.locator("#jobs tbody tr").first.locator("button")).to_have_attribute("title", jobs[-1])
    page.get_by_label("Show").select_option("active")
    expect(page.locator("#jobs tbody tr")).to_have_count(2)
    page.get_by_label("Show").select_option("acked")
    expect(page.locator("#jobs-note")).to_have_text("No jobs found.")
    page.get_by_role("link", name="All queues").click()
    expect(page.locator("#overview")).to_be_visible()
    expect(page.locator("#queue")).to_be_hidden()
    page.go_back()
    expect(page.locator("#queue-title")).to_have_text("mail")


def test_missing_queue_is_reported(open_node: OpenNode, look: Look) -> None:
    page = look(open_node(), "#queue=gone")
    expect(page.locator("#queue-note")).to_contain_text("No member that answers has this queue")


def fail(node: ConsoleNode, queue: str, body: str, reason: str) -> None:
    """Add a job and reject it."""
    add(node, queue, 1, body)
    ((_, job, _),) = node.call("GETJOB", "FROM", queue)
    node.call("NACK", job, "REASON", reason, "DEAD")


def test_dead_letters_are_shown_by_queue_and_reason(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    for body, reason in (("one", "timeout"), ("two", "timeout"), ("<b>three</b>", "<i>no</i>")):
        fail(node, "mail", body, reason)
    fail(node, "sms", "four", "timeout")
    page = look(node, "#dead")
    expect(page.locator("#dead-note")).to_have_text("4 dead letters.")
    expect(page.locator("#dead-groups tbody tr")).to_have_count(3)
    first = page.locator("#dead-groups tbody tr").first
    expect(first).to_contain_text("mail.dead")
    expect(first).to_contain_text("timeout")
    expect(page.get_by_role("button", name="Redrive mail.dead, timeout")).to_be_hidden()
    page.get_by_role("button", name="Show mail.dead, <i>no</i>").click()
    expect(page.locator("#dead-jobs tbody tr")).to_have_count(1)
    page.locator("#dead-jobs button.link").click()
    expect(page.locator("#dead-jobs .facts")).to_contain_text("mail, after 1 attempt")
    expect(page.locator("#dead-jobs pre")).to_have_text("<b>three</b>")
    page.get_by_role("button", name="Show all").click()
    expect(page.locator("#dead-jobs tbody tr:not(.more)")).to_have_count(4)
    page.get_by_role("link", name="All queues").last.click()
    expect(page.locator("#overview")).to_be_visible()


def test_settings_of_a_queue_are_shown_with_their_origin(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    add(node, "mail")
    node.call("QCONF", "ma*", "SET", "limit", 5)
    node.call("QCONF", "mail", "SET", "backoff", "1000 60000")
    page = look(node, "#queue=mail")
    expect(page.locator("#settings tbody tr")).to_have_count(2)
    expect(page.locator("#settings tbody tr", has_text="limit")).to_contain_text("ma*")
    expect(page.locator("#settings tbody tr", has_text="backoff")).to_contain_text("1000 60000")


# --- actions ----------------------------------------------------------------------------------------------------------


def test_page_is_read_only_when_actions_are_disabled(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    add(node, "mail")
    page = look(node, "#queue=mail")
    expect(page.locator("#queue-note")).to_contain_text("actions are disabled")
    expect(page.locator("#pausing")).to_be_hidden()
    expect(page.locator("#jobs tbody tr")).to_have_count(1)
    expect(page.locator("#jobs input")).to_be_hidden()


def test_selected_jobs_are_requeued_and_deleted(open_node: OpenNode, look: Look) -> None:
    node = open_node("--http-actions", "yes")
    jobs = add(node, "mail", 4)
    node.call("GETJOB", "COUNT", 2, "FROM", "mail")
    page = look(node, "#queue=mail")
    page.get_by_label("Show").select_option("active")
    for job in jobs[:2]:
        page.get_by_label(f"Select job {job}").check()
    expect(page.locator("#jobs-actions")).to_contain_text("2 selected")
    page.get_by_role("button", name="Run now").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#live")).to_have_text("2 of 2 jobs queued.")
    assert node.call("QLEN", "mail") == 4
    page.get_by_label("Show").select_option("oldest")
    page.get_by_label(f"Select job {jobs[0]}").check()
    page.get_by_role("button", name="Delete from this node").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#jobs tbody tr")).to_have_count(3)
    assert node.call("SHOW", jobs[0]) is None


def test_selected_dead_letters_are_redriven_and_deleted(open_node: OpenNode, look: Look) -> None:
    node = open_node("--http-actions", "yes")
    for body in ("one", "two", "three"):
        fail(node, "mail", body, "timeout")
    page = look(node, "#dead")
    page.locator("#dead-jobs input").first.check()
    page.get_by_role("button", name="Redrive selected").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#live")).to_have_text("1 of 1 dead letter redriven.")
    assert (node.call("QLEN", "mail"), node.call("QLEN", "mail.dead")) == (1, 2)
    expect(page.locator("#dead-jobs tbody tr")).to_have_count(2)
    page.get_by_role("button", name="Select all shown").click()
    page.get_by_role("button", name="Delete selected").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#dead-note")).to_have_text("No dead letters.")
    assert (node.call("QLEN", "mail"), node.call("QLEN", "mail.dead")) == (1, 0)


def test_dead_letters_with_one_reason_are_redriven(open_node: OpenNode, look: Look) -> None:
    node = open_node("--http-actions", "yes")
    for body, reason in (("one", "timeout"), ("two", "timeout"), ("three", "time*")):
        fail(node, "mail", body, reason)
    page = look(node, "#dead")
    page.get_by_role("button", name="Redrive mail.dead, time*").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#live")).to_have_text("Redrive started.")
    expect(page.locator("#dead-note")).to_have_text("2 dead letters.")
    assert (node.call("QLEN", "mail"), node.call("QLEN", "mail.dead")) == (1, 2)


def test_queue_is_redriven_at_a_rate_and_the_redrive_is_cancelled(open_node: OpenNode, look: Look) -> None:
    node = open_node("--http-actions", "yes")
    for number in range(20):
        fail(node, "mail", str(number), "timeout")
    fail(node, "sms", "x", "timeout")
    page = look(node, "#dead")
    queue = page.locator("#dead-queues tbody tr", has_text="mail.dead")
    expect(queue.locator("td").first).to_have_text("20")
    page.locator("#dead-rate").fill("0")
    page.get_by_role("button", name="Redrive queue mail.dead").click()
    expect(page.locator("#confirm")).to_be_hidden()
    page.locator("#dead-rate").fill("1")
    page.get_by_role("button", name="Redrive queue mail.dead").click()
    expect(page.locator("#confirm-text")).to_contain_text("up to 1 per second")
    page.locator("#confirm-yes").click()
    expect(queue).to_contain_text(re.compile("running: .* moved, .* left, up to 1 per second"))
    expect(page.get_by_role("button", name="Redrive queue mail.dead")).to_be_hidden()
    page.get_by_role("button", name="Cancel redrive of mail.dead").click()
    page.locator("#confirm-yes").click()
    expect(queue).to_contain_text("cancelled: ")
    page.locator("#dead-rate").fill("1000")
    page.get_by_role("button", name="Redrive queue mail.dead").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#dead-note")).to_have_text("1 dead letter.")
    expect(queue).to_contain_text(re.compile("^mail.dead0done: "))
    assert (node.call("QLEN", "mail"), node.call("QLEN", "mail.dead"), node.call("QLEN", "sms.dead")) == (20, 0, 1)


def test_delayed_jobs_are_run_now_and_canceled(open_node: OpenNode, look: Look) -> None:
    node = open_node("--http-actions", "yes")
    one, two = (node.call("ADDJOB", "mail", "x", 0, "DELAY", 3600).decode() for _ in range(2))
    add(node, "mail")
    page = look(node, "#queue=mail")
    page.get_by_label("Show").select_option("delayed")
    expect(page.locator("#jobs tbody tr")).to_have_count(2)
    page.get_by_label(f"Select job {one}").check()
    page.get_by_role("button", name="Run now").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#jobs tbody tr")).to_have_count(1)
    assert node.call("QLEN", "mail") == 2
    page.get_by_label(f"Select job {two}").check()
    page.get_by_role("button", name="Cancel on all nodes").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#jobs-note")).to_have_text("No jobs found.")
    assert node.call("SHOW", two) is None


def test_refused_action_is_reported(open_node: OpenNode, look: Look) -> None:
    node = open_node("--http-actions", "yes")
    add(node, "mail")
    page = look(node, "#queue=mail")
    page.get_by_role("button", name="Both paused").click()
    node.call("CONFIG", "SET", "http-actions", "no")
    page.locator("#confirm-yes").click()
    expect(page.locator("#notice")).to_have_text("actions are disabled on this node (http-actions)")


def test_action_applies_to_many_selected_jobs(open_node: OpenNode, look: Look) -> None:
    node = open_node("--http-actions", "yes")
    add(node, "mail", 70)
    node.call("GETJOB", "COUNT", 70, "FROM", "mail")
    page = look(node, "#queue=mail")
    page.get_by_label("Show").select_option("active")
    expect(page.locator("#jobs tbody tr")).to_have_count(70)
    page.evaluate("document.querySelectorAll('#jobs input').forEach((box) => box.click())")
    expect(page.locator("#jobs-actions")).to_contain_text("70 selected")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#confirm-title")).to_have_text("Run now: 70 jobs")
    page.locator("#confirm-yes").click()
    expect(page.locator("#live")).to_have_text("70 of 70 jobs queued.")
    assert node.call("QLEN", "mail") == 70


def test_jobs_stay_selected_until_the_action_is_done(open_node: OpenNode, look: Look) -> None:
    """When a password is set in the meantime, the page asks for it and then executes the action."""
    node = open_node("--http-actions", "yes")
    (job,) = add(node, "mail")
    page = look(node, "#queue=mail")
    page.get_by_label(f"Select job {job}").check()
    with node.client() as client:
        client.call("CONFIG", "SET", "requirepass", "secret")
        client.call("AUTH", "secret")
        expect(page.locator("#password")).to_be_visible()
        page.keyboard.press("Escape")
        for press in ("Escape", "Enter"):
            page.get_by_role("button", name="Delete from this node").click()
            page.locator("#confirm-yes").click()
            expect(page.locator("#password")).to_be_visible()
            assert client.call("QLEN", "mail") == 1
            page.get_by_label("Password", exact=True).fill("secret")
            page.keyboard.press(press)
            expect(page.locator("#password")).to_be_hidden()
            if press == "Escape":
                expect(page.locator("#notice")).to_contain_text("password required")
                expect(page.locator("#jobs-actions")).to_contain_text("1 selected")
        expect(page.locator("#live")).to_have_text("1 of 1 job deleted.")
        assert client.call("QLEN", "mail") == 0
        expect(page.locator("#live")).to_have_text("Live")


# --- permissions ------------------------------------------------------------------------------------------------------


def test_password_is_requested(open_node: OpenNode, look: Look) -> None:
    node = open_node("--requirepass", "pä€ss", "--http-actions", "yes")
    page = look(node, "#queue=mail")
    for given in ("wrong", "pä€ss"):
        expect(page.locator("#password")).to_be_visible()
        page.get_by_label("Password", exact=True).fill(given)
        page.keyboard.press("Enter")
    expect(page.locator("#live")).to_have_text("Live")
    expect(page.locator("#password")).to_be_hidden()
    expect(page.locator("#jobs-note")).to_have_text("No jobs found.")
    assert "ss" not in page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")


def test_password_can_be_entered_after_a_cancelled_dialog(open_node: OpenNode, look: Look) -> None:
    page = look(open_node("--requirepass", "secret"))
    expect(page.locator("#password")).to_be_visible()
    expect(page.locator("#login")).to_be_hidden()
    for _ in range(2):
        page.keyboard.press("Escape")
        expect(page.locator("#password")).to_be_hidden()
        expect(page.locator("#live")).to_have_text("Password required")
        page.get_by_role("button", name="Enter password").click()
        expect(page.locator("#password")).to_be_visible()
    page.get_by_label("Password", exact=True).fill("secret")
    page.keyboard.press("Enter")
    expect(page.locator("#live")).to_have_text("Live")
    expect(page.locator("#login")).to_be_hidden()


def test_page_opened_by_host_name_explains_the_refusal(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    node.host = "console.localhost"
    page = look(node)
    expect(page.locator("#notice")).to_contain_text("use an address, or set a password")
    expect(page.locator("#live")).to_have_text("Request refused, retrying…")


def test_reason_for_refused_jobs_is_shown(acting_node: ConsoleNode, look: Look) -> None:
    page = look(acting_node)
    expect(page.locator("#live")).to_have_text("Live")
    shown = page.evaluate(
        """async () => {
          const { NodeView } = await import("./console/node.js");
          const figures = { aof_enabled: 1, aof_refusing: "The disk is full", aof_current_size: 5 };
          document.getElementById("pause").click();
          new NodeView().show({ figures, members: [], known_members: 1, node: "n" });
          return [document.getElementById("chips").innerText, document.getElementById("tiles").innerText];
        }"""
    )
    assert "refusing new jobs" in shown[0]
    assert "new jobs are refused: The disk is full" in shown[1]


# --- connections ------------------------------------------------------------------------------------------------------


def test_updates_can_be_paused_and_resumed(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    add(node, "mail")
    page = look(node)
    expect(row(page, "mail").locator("td").first).to_have_text("1")
    page.get_by_role("button", name="Pause updates").click()
    expect(page.locator("#live")).to_have_text("Updates paused")
    add(node, "mail")
    node.state("", lambda update: update["queues"] and update["queues"][0]["len"] == 2)
    expect(row(page, "mail").locator("td").first).to_have_text("1")
    page.get_by_role("button", name="Pause updates").click()
    expect(row(page, "mail").locator("td").first).to_have_text("2")


# --- for everybody ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [320, 390, 768, 900, 1280, 1920])
def test_content_fits_any_width(acting_node: ConsoleNode, look: Look, width: int) -> None:
    add(acting_node, "a-long-name-" * 12, 3, "a body without any place to break it " + "x" * 3000)
    add(acting_node, "mail", 3)
    for target in ("", "#queue=mail", "#queue=" + "a-long-name-" * 12):
        page = look(acting_node, target, viewport={"width": width, "height": 800})
        expect(page.locator("#live")).to_have_text("Live")
        if target:
            page.locator("#jobs input").first.check()
            page.locator("#jobs button.link").first.click()
            expect(page.locator("#jobs pre")).to_be_visible()
        else:
            expect(row(page, "mail")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [320, 900, 1280])
def test_dead_letters_fit_any_width_and_have_enough_contrast(open_node: OpenNode, look: Look, width: int) -> None:
    node = open_node("--http-actions", "yes")
    fail(node, "a-long-name-" * 12, "a body without any place to break it " + "x" * 3000, "y" * 1000)
    fail(node, "mail", "x", "timeout")
    theme = "dark" if width == 320 else "light"
    page = look(node, "#dead", viewport={"width": width, "height": 800}, color_scheme=theme)
    expect(page.locator("#dead-jobs tbody tr")).to_have_count(2)
    for toggle in page.locator("#dead-jobs button.link").all():
        toggle.click()
    expect(page.locator("#dead-jobs pre").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CONTRASTS) == []
    assert page.evaluate(UNNAMED) == []


CONTRASTS: Final = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const part = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const text = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!text || !node.checkVisibility() || node.tagName === "NOSCRIPT") continue;
    const [one, other] = [light(parse(getComputedStyle(node).color)), light(ground(node))].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (other + 0.05);
    if (contrast < 4.5) found.push(`${node.outerHTML.slice(0, 60)}: ${contrast.toFixed(2)}`);
  }
  return found;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_enough_contrast_in_both_themes(acting_node: ConsoleNode, look: Look, theme: str) -> None:
    add(acting_node, "mail", 3)
    acting_node.call("PAUSE", "mail", "out")
    try:
        for target in ("", "#queue=mail"):
            page = look(acting_node, target, color_scheme=theme)
            expect(page.locator(".chip:visible", has_text="paused").first).to_be_visible()
            assert page.locator("html").get_attribute("data-theme") == theme
            assert page.evaluate(CONTRASTS) == []
    finally:
        acting_node.call("PAUSE", "mail", "none")


def test_theme_can_be_chosen_and_is_stored(acting_node: ConsoleNode, look: Look) -> None:
    page = look(acting_node, color_scheme="light")
    root = page.locator("html")
    for label, theme in (("Theme: light", "light"), ("Theme: dark", "dark"), ("Theme: system", "light")):
        page.locator("#theme").click()
        expect(page.locator("#theme")).to_have_text(label)
        expect(root).to_have_attribute("data-theme", theme)
    page.locator("#theme").click()
    page.locator("#theme").click()
    page.reload()
    expect(root).to_have_attribute("data-theme", "dark")


UNNAMED: Final = """() => [...document.querySelectorAll("button, input, select, a, table, section, dialog, svg")]
  .filter((node) => node.checkVisibility())
  .filter((node) => !(node.textContent.trim() || node.ariaLabel || node.labels?.length
    || node.getAttribute("aria-labelledby") || node.caption))
  .map((node) => node.outerHTML.slice(0, 80))"""


def test_all_elements_have_accessible_names(acting_node: ConsoleNode, look: Look) -> None:
    add(acting_node, "mail", 3)
    for target in ("", "#queue=mail"):
        page = look(acting_node, target)
        expect(page.locator("table:visible tbody tr").first).to_be_visible()
        assert page.evaluate(UNNAMED) == []
        for landmark in ("banner", "main", "contentinfo"):
            expect(page.get_by_role(landmark)).to_have_count(1)
        assert page.locator("h1:visible").count() == 1
        assert page.locator("[onclick], [style*=url]").count() == 0


def test_page_works_with_the_keyboard(open_node: OpenNode, look: Look) -> None:
    node = open_node("--http-actions", "yes")
    add(node, "mail")
    page = look(node)
    expect(row(page, "mail")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    for _ in page.locator("[aria-labelledby=queues-title] :is(a, input, select):visible").all():
        page.keyboard.press("Tab")
    expect(page.locator("#queues a")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#queue-title")).to_be_focused()
    page.get_by_role("button", name="Input paused").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#confirm")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#confirm")).to_be_hidden()
    expect(page.get_by_role("button", name="Input paused")).to_be_focused()
    assert node.call("PAUSE", "mail", "state") == b"none"


def test_page_works_on_a_phone(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    add(node, "mail", 3)
    page = look(node, viewport=PHONE, has_touch=True, is_mobile=True)
    expect(row(page, "mail")).to_contain_text("3")
    page.locator("#queues a").tap()
    expect(page.locator("#queue-title")).to_have_text("mail")
    expect(page.locator("#jobs tbody tr")).to_have_count(3)
