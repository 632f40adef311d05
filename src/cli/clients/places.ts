import path from 'node:path'

/** An MCP client that this command line knows. */
export type ClientId =
  | 'claude'
  | 'claude-desktop'
  | 'codex'
  | 'gemini'
  | 'cursor'
  | 'vscode'
  | 'windsurf'
  | 'zed'
  | 'qwen'
  | 'amp'

/** A client, as far as its configuration of MCP servers goes. */
export interface CodingClient {
  readonly id: ClientId
  readonly title: string
  /** How its file is written; JSON is read with comments and trailing commas. */
  readonly format: 'json' | 'toml'
  /** The object or table of the file that holds the servers by name. */
  readonly container: 'mcpServers' | 'servers' | 'mcp_servers' | 'context_servers' | 'amp.mcpServers'
  /** Its reader takes no comments and no trailing commas, and leaves the whole file out. Default: it does. */
  readonly isStrict?: true
  /** Must an entry name its transport, stdio? */
  readonly isTyped: boolean
  /** The step after which the client sees the change. */
  readonly after: string
}

/** Where a client keeps the servers of one user. */
export interface ClientPlace {
  /** The file; need not exist. */
  readonly file: string
  /** The client is on this machine when one of these is there. */
  readonly marks: readonly string[]
}

/** Environment from which the paths are computed. */
export interface PlaceSources {
  readonly platform: NodeJS.Platform
  readonly env: Readonly<Record<string, string | undefined>>
  /** The home directory where the environment names none. */
  readonly home: string
}

/** Every client. Files of projects are left alone: a cloned repository must not be able to name commands. */
export const CLIENTS: readonly CodingClient[] = [
  {
    id: 'claude',
    title: 'Claude Code',
    format: 'json',
    container: 'mcpServers',
    isStrict: true,
    isTyped: true,
    after: 'A new session of Claude Code sees it: /mcp'
  },
  {
    id: 'claude-desktop',
    title: 'Claude Desktop',
    format: 'json',
    container: 'mcpServers',
    isStrict: true,
    isTyped: false,
    after: 'Quit Claude Desktop and start it again.'
  },
  {
    id: 'codex',
    title: 'Codex',
    format: 'toml',
    container: 'mcp_servers',
    isTyped: false,
    after: 'A new session of Codex sees it: /mcp'
  },
  {
    id: 'gemini',
    title: 'Gemini CLI',
    format: 'json',
    container: 'mcpServers',
    isTyped: false,
    after:
      'A new session of Gemini CLI sees it: /mcp. In a folder that it does not trust it starts no MCP server: /permissions'
  },
  { id: 'cursor', title: 'Cursor', format: 'json', container: 'mcpServers', isTyped: true, after: 'Restart Cursor.' },
  {
    id: 'vscode',
    title: 'VS Code',
    format: 'json',
    container: 'servers',
    isTyped: true,
    after: 'In VS Code: "MCP: List Servers", then start it.'
  },
  {
    id: 'windsurf',
    title: 'Windsurf',
    format: 'json',
    container: 'mcpServers',
    isTyped: false,
    after: 'In Windsurf: refresh the MCP servers of Cascade.'
  },
  {
    id: 'zed',
    title: 'Zed',
    format: 'json',
    container: 'context_servers',
    isTyped: false,
    after: 'Zed starts it at once; its Agent Panel lists it.'
  },
  {
    id: 'qwen',
    title: 'Qwen Code',
    format: 'json',
    container: 'mcpServers',
    isTyped: false,
    after: 'A new session of Qwen Code sees it: /mcp'
  },
  { id: 'amp', title: 'Amp', format: 'json', container: 'amp.mcpServers', isTyped: false, after: 'Restart Amp.' }
]

/**
 * Where a client keeps the servers of one user, by its published documentation. Relative paths in the environment are
 * ignored.
 * - Claude Code: `~/.claude.json`, top level, scope "user" (code.claude.com/docs/en/mcp); inside CLAUDE_CONFIG_DIR
 *   where that is set.
 * - Claude Desktop: `claude_desktop_config.json` (modelcontextprotocol.io/docs/develop/connect-local-servers); on
 *   Linux, where it comes in builds of others, the same below the XDG config directory.
 * - Codex: `config.toml` in CODEX_HOME, by default `~/.codex` (developers.openai.com/codex/mcp,
 *   /codex/config-advanced).
 * - Gemini CLI: `~/.gemini/settings.json`; GEMINI_CLI_HOME takes the place of the home directory
 *   (geminicli.com/docs/reference/configuration).
 * - Cursor: `~/.cursor/mcp.json` (cursor.com/docs/mcp).
 * - Windsurf: `~/.codeium/windsurf/mcp_config.json` (docs.windsurf.com/windsurf/cascade/mcp).
 * - Zed: `settings.json` in `~/.config/zed`, on Windows in `Zed` of the application data (zed.dev/docs/ai/mcp,
 *   /configuring-zed).
 * - Qwen Code: `~/.qwen/settings.json` (qwenlm.github.io/qwen-code-docs/en/users/features/mcp).
 * - Amp: `~/.config/amp/settings.json` (ampcode.com/manual).
 * - VS Code: `mcp.json` beside the user's settings, for the default profile
 *   (code.visualstudio.com/docs/copilot/reference/mcp-configuration, code.visualstudio.com/docs/configure/settings).
 */
export function clientPlace(id: ClientId, sources: PlaceSources): ClientPlace {
  const { join } = sources.platform === 'win32' ? path.win32 : path.posix
  const home = homeOf(sources)
  const inside = (dir: string, file: string): ClientPlace => ({ file: join(dir, file), marks: [dir] })
  switch (id) {
    case 'claude': {
      const dir = given(sources, 'CLAUDE_CONFIG_DIR')
      if (dir !== null) return inside(dir, '.claude.json')
      const file = join(home, '.claude.json')
      return { file, marks: [file, join(home, '.claude')] }
    }
    case 'claude-desktop':
      return inside(join(appData(sources), 'Claude'), 'claude_desktop_config.json')
    case 'codex':
      return inside(given(sources, 'CODEX_HOME') ?? join(home, '.codex'), 'config.toml')
    case 'gemini':
      return inside(join(given(sources, 'GEMINI_CLI_HOME') ?? home, '.gemini'), 'settings.json')
    case 'cursor':
      return inside(join(home, '.cursor'), 'mcp.json')
    case 'vscode':
      return inside(join(appData(sources), 'Code', 'User'), 'mcp.json')
    case 'windsurf':
      return inside(join(home, '.codeium', 'windsurf'), 'mcp_config.json')
    case 'zed':
      return inside(zedDirectory(sources), 'settings.json')
    case 'qwen':
      return inside(join(home, '.qwen'), 'settings.json')
    case 'amp':
      return inside(join(home, '.config', 'amp'), 'settings.json')
  }
}

/** On macOS the same as on Linux without variables. */
function zedDirectory(sources: PlaceSources): string {
  const { platform } = sources
  if (platform === 'win32') return path.win32.join(appData(sources), 'Zed')
  if (platform === 'darwin') return path.posix.join(homeOf(sources), '.config', 'zed')
  return path.posix.join(appData(sources), 'zed')
}

/** Where programs with a window keep what is the user's. */
function appData(sources: PlaceSources): string {
  const { join } = sources.platform === 'win32' ? path.win32 : path.posix
  const home = homeOf(sources)
  if (sources.platform === 'win32') return given(sources, 'APPDATA') ?? join(home, 'AppData', 'Roaming')
  if (sources.platform === 'darwin') return join(home, 'Library', 'Application Support')
  return given(sources, 'XDG_CONFIG_HOME') ?? join(home, '.config')
}

function homeOf(sources: PlaceSources): string {
  return given(sources, sources.platform === 'win32' ? 'USERPROFILE' : 'HOME') ?? sources.home
}

/** An absolute path of the environment. */
function given({ platform, env }: PlaceSources, name: string): string | null {
  const value = env[name]
  const { isAbsolute } = platform === 'win32' ? path.win32 : path.posix
  return value !== undefined && isAbsolute(value) ? value : null
}
