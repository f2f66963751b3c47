// Trades the code in the address for a cookie. The code is in the fragment, so
// that it is in no log and no Referer, and leaves the address bar at once.
"use strict";
(async () => {
  const message = document.getElementById("message");
  const code = location.hash.slice(1);
  history.replaceState(null, "", "/login");
  try {
    const answer = await fetch("/api/v1/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code }),
    });
    if (answer.ok) {
      location.replace("/");
      return;
    }
    const body = await answer.json();
    message.textContent = body.error.message;
  } catch {
    message.textContent = "The daemon does not answer. Is it running?";
  }
})();
