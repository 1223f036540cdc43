"""The console in a real Chromium: what it shows, an action, and a lost connection."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from console.browsing import add, row
from console.conftest import Look, OpenNode


def test_queues_are_shown_and_updated(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    add(node, "mail", 3)
    page = look(node)
    expect(page.locator("#live")).to_have_text("Live")
    expect(row(page, "mail").locator("td").first).to_have_text("3")
    add(node, "mail", 2)
    add(node, "thumbnails", 7)
    expect(row(page, "mail").locator("td").first).to_have_text("5")
    expect(page.locator("#queues tbody tr").first).to_contain_text("thumbnails")
    expect(row(page, "mail").locator("svg .line")).to_have_attribute("d", re.compile(r"^M.*L"))
    expect(page.locator("#members tbody tr")).to_have_count(1)
    expect(page.locator("#chips")).to_contain_text("read-only")
    expect(page).to_have_title(re.compile(r":\d+ · Disque$"))


def test_schedules_are_shown_run_paused_and_resumed(open_node: OpenNode, look: Look) -> None:
    node = open_node("--http-actions", "yes")
    node.call("SCHEDULE", "<b>night", "SET", "0 3 * * *", "mail", "body", "TZ", "Europe/Berlin")
    node.call("SCHEDULE", "old", "SET", "@daily", "mail", "body")
    page = look(node)
    page.get_by_role("link", name="Schedules").click()
    expect(page.locator("#schedules-note")).to_have_text("2 schedules.")
    night = page.locator("#schedules-table tbody tr", has_text="<b>night")
    expect(night).to_contain_text("0 3 * * * Europe/Berlin")
    expect(night.locator(".chip")).to_have_text("active")
    page.get_by_role("button", name="Run now: <b>night").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#live")).to_have_text("Job added.")
    assert node.call("QLEN", "mail") == 1
    page.get_by_role("button", name="Pause: <b>night").click()
    page.locator("#confirm-yes").click()
    expect(night.locator(".chip")).to_have_text("paused")
    page.get_by_role("button", name="Resume: <b>night").click()
    page.locator("#confirm-yes").click()
    expect(night.locator(".chip")).to_have_text("active")
    page.get_by_role("link", name="All queues").last.click()
    expect(page.locator("#overview")).to_be_visible()


def test_buttons_pause_and_resume_a_queue(open_node: OpenNode, look: Look) -> None:
    node = open_node("--http-actions", "yes")
    add(node, "mail")
    page = look(node, "#queue=mail")
    page.get_by_role("button", name="Both paused").click()
    page.locator("#confirm").get_by_role("button", name="Cancel").click()
    expect(page.locator("#confirm")).to_be_hidden()
    assert node.call("PAUSE", "mail", "state") == b"none"
    page.get_by_role("button", name="Both paused").click()
    page.locator("#confirm").get_by_role("button", name="Pause both").click()
    expect(page.get_by_role("button", name="Both paused")).to_have_attribute("aria-pressed", "true")
    assert node.call("PAUSE", "mail", "state") == b"all"
    page.get_by_role("button", name="Running").click()
    page.locator("#confirm").get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Running")).to_have_attribute("aria-pressed", "true")
    assert node.call("PAUSE", "mail", "state") == b"none"


def test_lost_connection_is_reported_and_reestablished(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    add(node, "mail")
    page = look(node)
    expect(page.locator("#live")).to_have_text("Live")
    node.server.stop()
    expect(page.locator("#live")).to_have_text("Disconnected, reconnecting…")
    node.server.__init__(  # type: ignore[misc]  # the same node once more
        node.server.directory, "--http-port", str(node.http_port), port=node.server.port
    )
    node.server.wait_ready()
    expect(page.locator("#live")).to_have_text("Live")
    expect(page.locator("#queues-note")).to_have_text("No queues.")
