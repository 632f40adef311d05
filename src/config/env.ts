import { nearest } from '../kit/text.js'
import { type Candidate, type ConfigFault, fromText } from './candidate.js'
import { allSettings, envName, isFileOnly, type NamedSetting, SETTINGS } from './settings.js'

/** Variables of another form than `A2A_NODE_<SECTION>_<KEY>`. */
const SHORT_NAMES: Readonly<Record<string, string>> = { A2A_NODE_LOCAL_PORT: 'network.localPort' }
const OTHERS = new Set(['A2A_NODE_HOME'])
const PREFIX = 'A2A_NODE_'

/**
 * Reads the settings of the environment. A fault is an unknown key of a known section, or a name one letter away from a
 * known one. Other variables with the prefix `A2A_NODE_` are ignored.
 */
export function readEnv(env: Readonly<Record<string, string | undefined>>): {
  readonly candidates: Candidate[]
  readonly faults: ConfigFault[]
} {
  const known = knownNames()
  const candidates: Candidate[] = []
  const faults: ConfigFault[] = []
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith(PREFIX) || text === undefined || OTHERS.has(name)) continue
    const named = known.get(name)
    if (named !== undefined && isFileOnly(named.setting.form)) faults.push(fileOnly(name))
    else if (named === undefined) faults.push(...unknown(name, [...known.keys()]))
    else candidates.push({ path: named.path, value: fromText(text, named), source: 'env', where: name, line: null })
  }
  // The short name is the documented one: it stands before the long one and wins.
  candidates.sort((a, b) => Number(Object.hasOwn(SHORT_NAMES, b.where)) - Number(Object.hasOwn(SHORT_NAMES, a.where)))
  return { candidates, faults }
}

function knownNames(): Map<string, NamedSetting> {
  const settings = allSettings()
  const names = new Map(settings.map((one) => [envName(one.path), one]))
  for (const [name, path] of Object.entries(SHORT_NAMES)) {
    const named = settings.find((one) => one.path === path)
    if (named !== undefined) names.set(name, named)
  }
  return names
}

/** The environment of a start must not name programs to run, and has no form for a mapping. */
function fileOnly(name: string): ConfigFault {
  return {
    where: 'environment',
    line: null,
    key: name,
    reason: 'can only be set in the config file',
    allowed: null,
    nearest: []
  }
}

function unknown(name: string, known: readonly string[]): ConfigFault[] {
  const near = nearest(name, known)
  const section = Object.keys(SETTINGS).find((one) => name.startsWith(`${PREFIX}${one.toUpperCase()}_`))
  if (near.length === 0 && section === undefined) return []
  return [{ where: 'environment', line: null, key: name, reason: 'no such setting', allowed: null, nearest: near }]
}
