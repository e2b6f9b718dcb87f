/** The names of a service worker, which TypeScript knows as those of any worker. */

declare var registration: ServiceWorkerRegistration;
declare var clients: Clients;
declare function addEventListener(name: "notificationclick", listener: (event: NotificationEvent) => void): void;
