import test, { type Assert } from 'brittle'
import { CLIENTS, type ClientId, clientPlace, type PlaceSources } from '../../../src/cli/clients/places.js'

const LINUX: PlaceSources = { platform: 'linux', env: { HOME: '/home/ada' }, home: '/nowhere' }
const MACOS: PlaceSources = { platform: 'darwin', env: { HOME: '/Users/ada' }, home: '/nowhere' }
const WINDOWS: PlaceSources = {
  platform: 'win32',
  env: { USERPROFILE: 'C:\\Users\\ada', APPDATA: 'C:\\Users\\ada\\AppData\\Roaming' },
  home: 'C:\\nowhere'
}
const MAC_APPS = '/Users/ada/Library/Application Support'
const WINDOWS_APPS = 'C:\\Users\\ada\\AppData\\Roaming'

const USUAL: Readonly<Record<ClientId, readonly [linux: string, macos: string, windows: string]>> = {
  claude: ['/home/ada/.claude.json', '/Users/ada/.claude.json', 'C:\\Users\\ada\\.claude.json'],
  'claude-desktop': [
    '/home/ada/.config/Claude/claude_desktop_config.json',
    `${MAC_APPS}/Claude/claude_desktop_config.json`,
    `${WINDOWS_APPS}\\Claude\\claude_desktop_config.json`
  ],
  codex: ['/home/ada/.codex/config.toml', '/Users/ada/.codex/config.toml', 'C:\\Users\\ada\\.codex\\config.toml'],
  gemini: [
    '/home/ada/.gemini/settings.json',
    '/Users/ada/.gemini/settings.json',
    'C:\\Users\\ada\\.gemini\\settings.json'
  ],
  cursor: ['/home/ada/.cursor/mcp.json', '/Users/ada/.cursor/mcp.json', 'C:\\Users\\ada\\.cursor\\mcp.json'],
  vscode: [
    '/home/ada/.config/Code/User/mcp.json',
    `${MAC_APPS}/Code/User/mcp.json`,
    `${WINDOWS_APPS}\\Code\\User\\mcp.json`
  ],
  windsurf: [
    '/home/ada/.codeium/windsurf/mcp_config.json',
    '/Users/ada/.codeium/windsurf/mcp_config.json',
    'C:\\Users\\ada\\.codeium\\windsurf\\mcp_config.json'
  ],
  zed: [
    '/home/ada/.config/zed/settings.json',
    '/Users/ada/.config/zed/settings.json',
    `${WINDOWS_APPS}\\Zed\\settings.json`
  ],
  qwen: ['/home/ada/.qwen/settings.json', '/Users/ada/.qwen/settings.json', 'C:\\Users\\ada\\.qwen\\settings.json'],
  amp: [
    '/home/ada/.config/amp/settings.json',
    '/Users/ada/.config/amp/settings.json',
    'C:\\Users\\ada\\.config\\amp\\settings.json'
  ],
  opencode: [
    '/home/ada/.config/opencode/opencode.json',
    '/Users/ada/.config/opencode/opencode.json',
    'C:\\Users\\ada\\.config\\opencode\\opencode.json'
  ],
  cline: [
    '/home/ada/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json',
    `${MAC_APPS}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json`,
    `${WINDOWS_APPS}\\Code\\User\\globalStorage\\saoudrizwan.claude-dev\\settings\\cline_mcp_settings.json`
  ],
  goose: [
    '/home/ada/.config/goose/config.yaml',
    '/Users/ada/.config/goose/config.yaml',
    `${WINDOWS_APPS}\\Block\\goose\\config\\config.yaml`
  ],
  junie: ['/home/ada/.junie/mcp/mcp.json', '/Users/ada/.junie/mcp/mcp.json', 'C:\\Users\\ada\\.junie\\mcp\\mcp.json']
}

test('every client has its file where its documentation says, on Linux, macOS and Windows', (t: Assert) => {
  for (const { id } of CLIENTS) {
    const found = [LINUX, MACOS, WINDOWS].map((sources) => clientPlace(id, sources).file)
    t.alike(found, [...USUAL[id]], id)
  }
  t.alike(
    CLIENTS.map(({ id }) => id),
    Object.keys(USUAL),
    'all of them are in the table'
  )
})

test('variables of the clients move their files; relative ones are ignored', (t: Assert) => {
  const file = (id: ClientId, env: Record<string, string>): string =>
    clientPlace(id, { ...LINUX, env: { HOME: '/home/ada', ...env } }).file
  t.is(file('claude', { CLAUDE_CONFIG_DIR: '/work/claude' }), '/work/claude/.claude.json')
  t.is(file('codex', { CODEX_HOME: '/work/codex' }), '/work/codex/config.toml')
  t.is(file('gemini', { GEMINI_CLI_HOME: '/work' }), '/work/.gemini/settings.json')
  t.is(file('vscode', { XDG_CONFIG_HOME: '/work/config' }), '/work/config/Code/User/mcp.json')
  t.is(file('vscode', { XDG_CONFIG_HOME: 'config' }), '/home/ada/.config/Code/User/mcp.json')
  t.is(file('codex', { CODEX_HOME: '.codex' }), '/home/ada/.codex/config.toml')
  t.is(clientPlace('vscode', { ...WINDOWS, env: {} }).file, 'C:\\nowhere\\AppData\\Roaming\\Code\\User\\mcp.json')
})

test('a client is looked for by its directory, Claude Code also by its file', (t: Assert) => {
  t.alike(clientPlace('codex', LINUX).marks, ['/home/ada/.codex'])
  t.alike(clientPlace('claude', LINUX).marks, ['/home/ada/.claude.json', '/home/ada/.claude'])
})
