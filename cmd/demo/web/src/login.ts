/** The login: as a guest, or with a name and a password. */
import { Accounts, type Session } from "switchboard-client/kit";
import { clone, find, onSubmit, show } from "./ui.js";

// A tab is a user: two tabs can play against each other, and a reload keeps the login.
const accounts = new Accounts(location.origin, {
  onRenewal: (renewal) => (renewal ? sessionStorage.setItem("renewal", renewal) : sessionStorage.removeItem("renewal")),
});

/** resume continues the login of this tab. It resolves to undefined if there is none. */
export async function resume(): Promise<Session | undefined> {
  const renewal = sessionStorage.getItem("renewal");
  return renewal ? accounts.resume(renewal) : undefined;
}

/** login shows the forms, and resolves when the user has come in. */
export function login(page: HTMLElement): Promise<Session> {
  const element = clone("login");
  show(page, element);
  find<HTMLInputElement>(element, "[name=nickname]").focus();
  return new Promise((resolve) => {
    onSubmit(find(element, ".guest"), async ({ nickname }) =>
      resolve(await accounts.register({ nickname: nickname! })),
    );
    onSubmit(find(element, ".account"), async ({ name, password }, by) => {
      const credentials = { name: name!, password: password! };
      resolve(
        await (by === "register"
          ? accounts.register({ ...credentials, nickname: name! })
          : accounts.login(credentials)),
      );
    });
  });
}
