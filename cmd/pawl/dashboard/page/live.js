"use strict";
const body = document.getElementById("live");
const pause = document.getElementById("pause");
const status = document.getElementById("status");
let source;
function connect() {
  source = new EventSource("/events");
  source.onmessage = (e) => {
    status.textContent = "";
    if (!body.contains(document.activeElement)) body.innerHTML = e.data; // the server escaped it
  };
  source.addEventListener("problem", (e) => { status.textContent = e.data; });
  source.onerror = () => { status.textContent ||= "No connection to the process."; };
}
pause.hidden = false;
pause.addEventListener("click", () => {
  const paused = pause.getAttribute("aria-pressed") !== "true";
  pause.setAttribute("aria-pressed", paused);
  if (paused) source.close(); else connect();
  status.textContent = paused ? "Paused." : "";
});
connect();
