import path from 'node:path'
import { type EntryShape, GOOSE_SHAPE, OPENCODE_SHAPE } from './shapes.js'

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
  | 'opencode'
  | 'cline'
  | 'goose'
  | 'junie'

/** A client, as far as its configuration of MCP servers goes. */
export interface CodingClient {
  readonly id: ClientId
  readonly title: string
  /** How its file is written; JSON is read with comments and trailing commas. */
  readonly format: 'json' | 'toml' | 'yaml'
  /** The object or table of the file that holds the servers by name. */
  readonly container:
    | 'mcpServers'
    | 'servers'
    | 'mcp_servers'
    | 'context_servers'
    | 'amp.mcpServers'
    | 'mcp'
    | 'extensions'
  /** Its reader takes no comments and no trailing commas, and leaves the whole file out. Default: it does. */
  readonly isStrict?: true
  /** How it writes an entry. Default: `command` and `args`. */
  readonly shape?: EntryShape
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
  { id: 'amp', title: 'Amp', format: 'json', container: 'amp.mcpServers', isTyped: false, after: 'Restart Amp.' },
  {
    id: 'opencode',
    title: 'OpenCode',
    format: 'json',
    container: 'mcp',
    shape: OPENCODE_SHAPE,
    isTyped: false,
    after: 'A new session of OpenCode sees it: opencode mcp list'
  },
  {
    id: 'cline',
    title: 'Cline',
    format: 'json',
    container: 'mcpServers',
    isStrict: true,
    isTyped: false,
    after: 'In VS Code: the MCP Servers panel of Cline lists it.'
  },
  {
    id: 'goose',
    title: 'Goose',
    format: 'yaml',
    container: 'extensions',
    shape: GOOSE_SHAPE,
    isTyped: false,
    after: 'A new session of Goose has it as an extension.'
  },
  {
    id: 'junie',
    title: 'JetBrains Junie',
    format: 'json',
    container: 'mcpServers',
    isStrict: true,
    isTyped: false,
    after: 'In the IDE: Settings, Tools, Junie, MCP Settings lists it.'
  }
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
 * - OpenCode: `~/.config/opencode/opencode.json`, key `mcp` (opencode.ai/docs/mcp-servers, /config).
 * - Cline: `cline_mcp_settings.json` in its storage of VS Code (docs.cline.bot/mcp/configuring-mcp-servers).
 * - Goose: `~/.config/goose/config.yaml`, on Windows below `Block` of the application data
 *   (block.github.io/goose/docs/guides/config-files).
 * - JetBrains Junie: `~/.junie/mcp/mcp.json` (jetbrains.com/help/junie/model-context-protocol-mcp.html).
 * - VS Code: `mcp.json` beside the user's settings, for the default profile
 *   (code.visualstudio.com/docs/copilot/reference/mcp-configuration, code.visualstudio.com/docs/configure/settings).
 */
export function clientPlace(id: ClientId, sources: PlaceSources): ClientPlace {
  const { join } = sources.platform === 'win32' ? path.win32 : path.posix
  return PLACES[id]({ sources, join, home: homeOf(sources), apps: appData(sources) })
}

interface Directories {
  readonly sources: PlaceSources
  join(...parts: readonly string[]): string
  readonly home: string
  /** {@link appData} */
  readonly apps: string
}

const PLACES: Readonly<Record<ClientId, (at: Directories) => ClientPlace>> = {
  claude: ({ sources, join, home }) => {
    const dir = given(sources, 'CLAUDE_CONFIG_DIR')
    if (dir !== null) return { file: join(dir, '.claude.json'), marks: [dir] }
    const file = join(home, '.claude.json')
    return { file, marks: [file, join(home, '.claude')] }
  },
  'claude-desktop': ({ join, apps }) => inside(join, [apps, 'Claude'], 'claude_desktop_config.json'),
  codex: ({ sources, join, home }) =>
    inside(join, [given(sources, 'CODEX_HOME') ?? join(home, '.codex')], 'config.toml'),
  gemini: ({ sources, join, home }) =>
    inside(join, [given(sources, 'GEMINI_CLI_HOME') ?? home, '.gemini'], 'settings.json'),
  cursor: ({ join, home }) => inside(join, [home, '.cursor'], 'mcp.json'),
  vscode: ({ join, apps }) => inside(join, [apps, 'Code', 'User'], 'mcp.json'),
  windsurf: ({ join, home }) => inside(join, [home, '.codeium', 'windsurf'], 'mcp_config.json'),
  zed: ({ sources, join, apps }) => inside(join, [unixConfig(sources, 'zed') ?? join(apps, 'Zed')], 'settings.json'),
  qwen: ({ join, home }) => inside(join, [home, '.qwen'], 'settings.json'),
  amp: ({ join, home }) => inside(join, [home, '.config', 'amp'], 'settings.json'),
  opencode: ({ sources, join, home }) =>
    inside(join, [unixConfig(sources, 'opencode') ?? join(home, '.config', 'opencode')], 'opencode.json'),
  cline: ({ join, apps }) => {
    const dir = join(apps, 'Code', 'User', 'globalStorage', 'saoudrizwan.claude-dev')
    return { file: join(dir, 'settings', 'cline_mcp_settings.json'), marks: [dir] }
  },
  goose: ({ sources, join, apps }) =>
    inside(join, [unixConfig(sources, 'goose') ?? join(apps, 'Block', 'goose', 'config')], 'config.yaml'),
  junie: ({ join, home }) => ({ file: join(home, '.junie', 'mcp', 'mcp.json'), marks: [join(home, '.junie')] })
}

/** A file in a directory by which its client is found. */
function inside(join: Directories['join'], parts: readonly string[], file: string): ClientPlace {
  const dir = join(...parts)
  return { file: join(dir, file), marks: [dir] }
}

/** A directory of the XDG config; on macOS that of Linux without variables. null: Windows has none. */
function unixConfig(sources: PlaceSources, name: string): string | null {
  const { platform } = sources
  if (platform === 'win32') return null
  if (platform === 'darwin') return path.posix.join(homeOf(sources), '.config', name)
  return path.posix.join(appData(sources), name)
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
