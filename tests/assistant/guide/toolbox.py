"""Tools as sessions have them: the built-in ones, and those of some well-known MCP servers."""

from dragoman.assistant.models.model import ToolDefinition


def schema(required="", **properties):
    shapes = {name: {"type": shape} if isinstance(shape, str) else shape for name, shape in properties.items()}
    return {"type": "object", "properties": shapes, "required": required.split(), "additionalProperties": False}


def text(description, **more):
    return {"type": "string", "description": description, **more}


def tool(name, description, required="", **properties):
    return ToolDefinition(name, description, schema(required, **properties))


ENTRY = {
    "type": "object",
    "properties": {
        "content": {"type": "string"},
        "priority": {"type": "string", "enum": ["high", "medium", "low"]},
        "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
    },
    "required": ["content", "priority", "status"],
}
EDIT = {
    "type": "object",
    "properties": {"old": {"type": "string", "minLength": 1}, "new": {"type": "string"}},
    "required": ["old", "new"],
}
LINE = {"type": "integer", "minimum": 1}

BUILT_IN = [
    tool(
        "read_file", "Read a text file, or some of its lines.", "path", path="string", start_line=LINE, line_count=LINE
    ),
    tool("write_file", "Write a file, in whole.", "path content", path="string", content="string"),
    tool(
        "edit_file",
        "Replace pieces of a file.",
        "path edits",
        path="string",
        edits={"type": "array", "items": EDIT, "minItems": 1},
    ),
    tool("list_directory", "List what is in a directory.", "path", path="string"),
    tool(
        "search_files", "Search names and contents of files.", "pattern", pattern="string", path="string", glob="string"
    ),
    tool("run_command", "Run a shell command in the working directory.", "command", command="string"),
    tool("update_plan", "Show the plan.", "entries", entries={"type": "array", "items": ENTRY}),
]

ZONE = text("IANA timezone name (e.g., 'America/New_York', 'Europe/London').")
REPO = {"owner": text("Repository owner"), "repo": text("Repository name")}
GIT = text("Path to Git repository")

FOREIGN = [
    tool("time__get_current_time", "Get current time in a specific timezones", "timezone", timezone=ZONE),
    tool(
        "time__convert_time",
        "Convert time between timezones",
        "source_timezone time target_timezone",
        source_timezone=text("Source IANA timezone name"),
        time=text("Time to convert in 24-hour format (HH:MM)"),
        target_timezone=text("Target IANA timezone name"),
    ),
    tool("git__git_status", "Shows the working tree status", "repo_path", repo_path=GIT),
    tool(
        "git__git_log",
        "Shows the commit logs",
        "repo_path",
        repo_path=GIT,
        max_count={"type": "integer", "default": 10},
    ),
    tool("git__git_diff_staged", "Shows changes that are staged for commit", "repo_path", repo_path=GIT),
    tool("git__git_commit", "Records changes to the repository", "repo_path message", repo_path=GIT, message="string"),
    tool(
        "git__git_create_branch", "Creates a new branch", "repo_path branch_name", repo_path=GIT, branch_name="string"
    ),
    tool(
        "fetch__fetch",
        "Fetches a URL from the internet and extracts its contents as markdown.",
        "url",
        url=text("URL to fetch", format="uri", minLength=1),
        max_length={"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1000000},
        raw={"type": "boolean", "default": False},
    ),
    tool(
        "weather__get_forecast",
        "Get the weather forecast for a city",
        "city",
        city=text("City name"),
        days={"type": "integer", "minimum": 1, "maximum": 14},
        units={"type": "string", "enum": ["metric", "imperial"]},
    ),
    tool(
        "github__list_issues",
        "List issues in a GitHub repository",
        "owner repo",
        **REPO,
        state={"type": "string", "enum": ["open", "closed", "all"]},
    ),
    tool("github__get_issue", "Get one issue", "owner repo issue_number", **REPO, issue_number="integer"),
    tool(
        "github__create_issue",
        "Create a new issue in a GitHub repository",
        "owner repo title",
        **REPO,
        title="string",
        body="string",
    ),
    tool(
        "github__search_repositories",
        "Search for GitHub repositories",
        "query",
        query=text("Search query"),
        perPage={"type": "integer", "maximum": 100},
    ),
    tool(
        "sqlite__read_query",
        "Execute a SELECT query on the SQLite database",
        "query",
        query=text("SELECT SQL query to execute"),
    ),
    tool("sqlite__list_tables", "List all tables in the SQLite database"),
    tool("sqlite__describe_table", "Get the schema of a table", "table_name", table_name=text("Name of the table")),
    tool("memory__search_nodes", "Search for nodes in the knowledge graph", "query", query="string"),
    tool("memory__add_note", "Remember a note", "note", note=text("What to remember")),
    tool(
        "memory__delete_entities",
        "Delete entities from the knowledge graph",
        "entityNames",
        entityNames={"type": "array", "items": {"type": "string"}},
    ),
    tool(
        "calendar__create_event",
        "Create a calendar event",
        "title date",
        title=text("Title of the event"),
        date=text("Day of the event", format="date"),
        time=text("Start time, HH:MM"),
    ),
    tool("calendar__list_events", "List the events in the calendar", "", date=text("Day", format="date")),
    tool("everything__echo", "Echoes back the input", "message", message=text("Message to echo")),
    tool("everything__add", "Adds two numbers", "a b", a={"type": "number"}, b={"type": "number"}),
    tool("everything__printEnv", "Prints all environment variables"),
    tool(
        "slack__post_message",
        "Post a message to a Slack channel",
        "channel text",
        channel=text("Channel name"),
        text=text("The message"),
    ),
    tool(
        "mail__send_email",
        "Send an email",
        "to subject body",
        to=text("Recipient", format="email"),
        subject="string",
        body="string",
    ),
    tool(
        "translate__translate_text",
        "Translate text into another language",
        "text target_language",
        text="string",
        target_language={"type": "string", "enum": ["German", "French", "Spanish", "Japanese"]},
    ),
    tool("docker__list_containers", "List Docker containers", "", all={"type": "boolean"}),
    tool("stocks__get_quote", "Get the price of a stock", "symbol", symbol=text("Ticker symbol")),
    tool(
        "pages__take_screenshot",
        "Take a screenshot of a web page",
        "url",
        url=text("Address", format="uri"),
        fullPage={"type": "boolean"},
    ),
]
