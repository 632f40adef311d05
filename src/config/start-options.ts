/**
 * An option of `start`: the setting of a flag that the next start uses again, or the reason why it is good for one run
 * only.
 */
export type StartOption = { readonly flag: string } & (
  | { readonly setting: string; readonly isList?: true; readonly isMany?: true }
  | { readonly perRun: string }
)

/** Every option of `start`. `isList`: comma-separated. `isMany`: repeated, and added to the setting. */
export const START_OPTIONS: readonly StartOption[] = [
  { flag: '--network', setting: 'network.kind' },
  { flag: '--bootstrap', setting: 'network.bootstrap', isList: true },
  { flag: '--serve-bootstrap', setting: 'network.serveBootstrap' },
  { flag: '--websocket', setting: 'websocket.listen' },
  { flag: '--via', setting: 'websocket.via', isList: true },
  { flag: '--agents', setting: 'agents.dirs', isMany: true },
  { flag: '--http', setting: 'http.listen' },
  { flag: '--name', perRun: 'the mesh keeps the name of a member, and its admins may change it' },
  { flag: '--join', perRun: 'an invite code is a secret, and a home joins once' },
  { flag: '--leave', perRun: 'it belongs to --join' },
  { flag: '--detach', perRun: 'it is the way to run one process' },
  { flag: '--report-ready', perRun: 'it belongs to the process that started this one' },
  { flag: '--join-once', perRun: 'it belongs to --join' },
  { flag: '--until-unused', perRun: 'it belongs to the MCP client that started this one' },
  { flag: '--timeout', perRun: 'it bounds the wait of one join' }
]

/** A flag that the next start uses again. */
export type RememberedOption = Extract<StartOption, { readonly setting: string }>

/** The flags that the next start uses again. */
export const REMEMBERED: readonly RememberedOption[] = START_OPTIONS.filter((one) => 'setting' in one)

/**
 * The texts of remembered flags by flag (`--http`); one text each but for `--agents`, whose directories are absolute.
 */
export type StartFlagTexts = Readonly<Record<string, readonly string[]>>
