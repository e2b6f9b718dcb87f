import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "no-control-regex": "off", // terminal output and hidden characters are what some expressions are about
      "no-implicit-coercion": "error",
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      eqeqeq: "error",
      "no-shadow": ["error", { builtinGlobals: false }],
      "no-unused-vars": ["error", { args: "after-used", argsIgnorePattern: "^_", ignoreRestSiblings: true }],
      "no-useless-return": "error",
      "object-shorthand": "error",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Text becomes markup in text/sanitize.js alone." },
        { property: "outerHTML", message: "Text becomes markup in text/sanitize.js alone." },
        { property: "insertAdjacentHTML", message: "Text becomes markup in text/sanitize.js alone." },
        { object: "document", property: "write", message: "Text becomes markup in text/sanitize.js alone." },
      ],
      "no-restricted-syntax": [
        "error",
        { selector: "ImportExpression > :not(Literal)", message: "Modules are named in the source: the page has no build." },
      ],
      "max-lines": ["error", 500],
    },
  },
  { files: ["**/text/sanitize.js"], rules: { "no-restricted-properties": "off" } },
  { files: ["**/js/theme.js"], languageOptions: { sourceType: "script" } },
  { files: ["**/web/worker/notifications.js"], languageOptions: { sourceType: "script", globals: globals.serviceworker } },
  { files: ["**/web/worker/diff.js"], languageOptions: { globals: globals.worker } },
];
