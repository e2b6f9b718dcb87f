// The site's search runs in a worker, and browsers start no worker for a page that was opened as a file.
// There, a hidden frame takes the worker's place.
if (location.protocol === "file:") {
  // As a worker's messages: a copy, in a task of its own.
  const send = (data, receive) => setTimeout(receive, 0, new MessageEvent("message", { data: structuredClone(data) }));

  window.Worker = class {
    #frame = document.createElement("iframe");
    #loaded;
    onmessage = null;

    constructor(url) {
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => send(data, (event) => this.onmessage?.(event));
      const script = inside.document.createElement("script");
      this.#loaded = new Promise((resolve) => (script.onload = resolve));
      script.src = url;
      inside.document.body.append(script);
    }

    async postMessage(data) {
      await this.#loaded;
      send(data, (event) => this.#frame.contentWindow?.dispatchEvent(event));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
