// upload uploads a file in three requests, and returns the service's description of the
// file. It calls progress with the fraction that is sent, from 0 to 1.
export async function upload(token, entity, file, progress) {
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
  const begun = await ask(token, "POST", "/v1/uploads", {
    entity, size: file.size, contentType: file.type || "application/octet-stream",
    sha256: Array.from(sum, (byte) => byte.toString(16).padStart(2, "0")).join(""),
  });
  await put(begun.upload, file, progress);
  return ask(token, "POST", `/v1/files/${begun.file.fileId}/complete`);
}

// ask sends a request to the service and returns the answer.
export async function ask(token, method, path, body) {
  const answer = await fetch(path, {
    method, body: body && JSON.stringify(body),
    headers: {Authorization: `Bearer ${token}`, ...(body && {"Content-Type": "application/json"})},
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.detail || said.title);
  return said;
}

// put sends the bytes to the store. It uses XMLHttpRequest because fetch reports no
// progress.
function put(to, file, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(to.method, to.url);
    for (const [name, value] of Object.entries(to.headers)) {
      if (name !== "Content-Length") request.setRequestHeader(name, value); // the browser sets it
    }
    request.upload.onprogress = (e) => progress(e.loaded / e.total);
    request.onload = () => request.status === 200 ? resolve() : reject(new Error(`the store answered ${request.status}`));
    request.onerror = () => reject(new Error("cannot reach the store"));
    request.send(file);
  });
}
