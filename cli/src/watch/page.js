// Asks for the page again every second and shows what changed. The page tells everything without it.
const parts = ["header", "#figures", "#rate", "#lately", "#violation"];
async function look() {
  let next;
  try {
    const answer = await fetch("/");
    next = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    document.querySelectorAll("#violation a").forEach(it => it.removeAttribute("href"));
    if (!document.body.classList.contains("ended")) {
      document.getElementById("state").textContent = "The watch does not answer any more.";
    }
    return;
  }
  document.title = next.title;
  document.body.className = next.body.className;
  for (const part of parts) {
    const [old, now] = [document.querySelector(part), next.querySelector(part)];
    if (old && now && old.outerHTML !== now.outerHTML) old.replaceWith(now);
  }
  setTimeout(look, 1000);
}
setTimeout(look, 1000);
