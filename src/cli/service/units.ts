/** First line of each written file: only files with it are replaced or removed. */
export const MARK = 'Written by a2a-node service install'

/** A node that a service manager runs. */
export interface ServiceSpec {
  /** Name of the service, without an ending: letters, digits, dashes. */
  readonly name: string
  /** Absolute path of `bin/a2a-node.js`. */
  readonly program: string
  /** Absolute path of the home; null: the default one. */
  readonly home: string | null
  /** Directories of programs, as of the shell of the installation. */
  readonly path: string
  /** Absolute path of the log file of the home. */
  readonly logFile: string
  /** The account of a service of the whole machine; null: a service of the user. */
  readonly account: string | null
}

/** Exit codes that another start would give again: wrong usage, refused by the mesh, a home or config with a fault. */
const LASTING_EXITS = '2 5 78'
/** Exit codes after a signal to stop. */
const STOPPED_EXITS = '130 143'
/** For any node: its agents may still write files and run sandboxes of their own. V8 makes code, so memory stays so. */
const HARDENED = [
  'UMask=0077',
  'NoNewPrivileges=yes',
  'LockPersonality=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'SystemCallArchitectures=native',
  'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK'
]
/** For services of the machine; the manager of a user may not set them. */
const HARDENED_SYSTEM = [
  'ProtectSystem=full',
  'ProtectClock=yes',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
  'ProtectControlGroups=yes',
  'CapabilityBoundingSet='
]

/** The unit of systemd that starts a node after boot, and again after a crash. */
export function systemdUnit(spec: ServiceSpec): string {
  const { account, logFile, path } = spec
  const isSystem = account !== null
  return `${[
    `# ${MARK}`,
    '[Unit]',
    'Description=a2a-node',
    ...(isSystem ? ['Wants=network-online.target', 'After=network-online.target'] : []),
    'StartLimitIntervalSec=300',
    'StartLimitBurst=10',
    '',
    '[Service]',
    ...(isSystem ? [`User=${account}`] : []),
    `Environment=${unitWord(`PATH=${path}`)}`,
    `ExecStart=${(isSystem ? loggedWords(spec) : serviceWords(spec)).map(unitWord).join(' ')}`,
    'ExecReload=/bin/kill -HUP $MAINPID',
    ...(isSystem ? [] : [`StandardOutput=append:${unitPath(logFile)}`, 'StandardError=inherit']),
    'Restart=on-failure',
    'RestartSec=5',
    `RestartPreventExitStatus=${LASTING_EXITS}`,
    `SuccessExitStatus=${STOPPED_EXITS}`,
    'KillMode=mixed',
    'TimeoutStopSec=20',
    ...HARDENED,
    ...(isSystem ? HARDENED_SYSTEM : []),
    '',
    '[Install]',
    `WantedBy=${isSystem ? 'multi-user.target' : 'default.target'}`
  ].join('\n')}\n`
}

/** The property list of launchd that starts a node after boot (or login), and again after a crash. */
export function launchdPlist(spec: ServiceSpec): string {
  const { account, logFile, name, path } = spec
  const text = (value: string): string => `<string>${xmlText(value)}</string>`
  return `<?xml version="1.0" encoding="UTF-8"?>
<!-- ${MARK} -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>${text(name)}
${account === null ? '' : `  <key>UserName</key>${text(account)}\n`}  <key>ProgramArguments</key>
  <array>
${serviceWords(spec)
  .map((word) => `    ${text(word)}\n`)
  .join('')}  </array>
  <key>EnvironmentVariables</key>
  <dict><key>PATH</key>${text(path)}</dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key>
  <dict><key>SuccessfulExit</key><false/></dict>
  <key>ThrottleInterval</key><integer>10</integer>
  <key>ExitTimeOut</key><integer>20</integer>
  <key>Umask</key><integer>63</integer>
  <key>StandardOutPath</key>${text(logFile)}
  <key>StandardErrorPath</key>${text(logFile)}
</dict>
</plist>
`
}

/** Did this program write a file with that text? */
export function isOurUnit(text: string): boolean {
  return text.split('\n', 2).some((line) => line === `# ${MARK}` || line === `<!-- ${MARK} -->`)
}

/** The home in a file that this program wrote; null: the default one, or unreadable. */
export function homeOfUnit(text: string): string | null {
  const [, unit] = /"--home" "((?:[^"\\]|\\.)*)"/.exec(text) ?? []
  if (unit !== undefined) return unit.replaceAll(/\\(.)/g, '$1').replaceAll('$$', '$').replaceAll('%%', '%')
  const [, plist] = /<string>--home<\/string>\s*<string>([^<]*)<\/string>/.exec(text) ?? []
  return plist === undefined ? null : plist.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

/** The node bounds its log file and reads its config again at SIGHUP, as a detached one. */
function serviceWords({ program, home }: ServiceSpec): readonly string[] {
  return [program, 'start', '--report-ready', ...(home === null ? [] : ['--home', home])]
}

/**
 * The same with the log opened by the account of the service. systemd would open it as root: the account could not
 * bound it, and a link in its home would lead root to any file.
 */
function loggedWords(spec: ServiceSpec): readonly string[] {
  return ['/bin/sh', '-c', 'exec "$@" >>"$0" 2>&1', spec.logFile, ...serviceWords(spec)]
}

/** A word in systemd's quotes: no variables and specifiers (systemd.service(5), systemd.syntax(7)). */
function unitWord(text: string): string {
  return `"${unitPath(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('$', '$$$$')}"`
}

/** A path without quotes. */
function unitPath(text: string): string {
  return text.replaceAll('%', '%%')
}

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
