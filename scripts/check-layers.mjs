#!/usr/bin/env node
// Checks which layer of src/ may import which. The table below IS the architecture; docs/ARCHITECTURE.md quotes it.
// Prints one line for each broken rule. Exit code: 0 clean, 1 broken.
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** layer -> layers it may import, npm packages it may import, may it touch Node built-ins. '' is src/*.ts itself. */
export const LAYERS = {
  kit: { layers: [], npm: ['b4a', 'z32'], node: false, pure: true },
  domain: { layers: ['kit'], npm: ['zod', 'compact-encoding'], node: false, pure: true },
  ports: { layers: ['kit', 'domain'], npm: [], node: false, pure: true, typesOnly: true },
  node: { layers: ['kit', 'domain', 'ports'], npm: [], node: false, pure: true },
  'adapters/*': { layers: ['kit', 'domain', 'ports'], npm: '*', node: true }, // and its own folder, never a sibling
  config: { layers: ['kit'], npm: ['zod', 'yaml', 're2js'], node: true },
  cli: {
    layers: ['kit', 'ports', 'config', 'adapters/control'],
    types: ['domain'],
    npm: ['commander', 'jsonc-parser', 'smol-toml', 'string-width', 'uqr', 'yaml'],
    node: true
  },
  types: { layers: [], npm: '*', node: false }, // ambient declarations; they name the packages they describe
  compose: { layers: '*', npm: '*', node: true }, // a running node: chooses its adapters
  maintenance: { layers: '*', npm: '*', node: true }, // a home without one: backup, restore, doctor, audit
  '': { layers: '*', npm: '*', node: true } // the public entries
}

/** Subjects of a layer that may use one package more. */
export const SUBJECTS = { 'domain/document': ['yjs'] }

/**
 * Features of src/node, each a folder: the others of which it may import values. Types may come from anywhere. The
 * files of src/node itself wire them together, and no feature imports a value of those.
 */
export const FEATURES = {
  access: [],
  ledger: [],
  observe: [],
  peers: [],
  tasks: [],
  cards: ['peers'],
  messaging: [],
  agents: ['messaging', 'peers'],
  policy: ['messaging', 'observe'],
  relay: ['messaging', 'peers'],
  reliable: ['ledger'],
  requests: ['ledger', 'messaging', 'tasks'],
  gateway: ['cards', 'ledger', 'peers', 'requests'],
  negotiation: ['cards', 'messaging'],
  sdk: ['cards', 'messaging', 'peers'],
  swarms: ['ledger', 'messaging', 'requests', 'tasks'],
  documents: ['swarms'],
  api: ['agents', 'cards', 'documents', 'messaging', 'policy', 'requests']
}

/** Commands that build a node or mend a home themselves, by a lazy import. The list may only shrink. */
const EXCEPT = Object.fromEntries(
  Object.entries({
    start: 'compose',
    agents: 'compose',
    'import-agents': 'compose',
    restore: 'maintenance',
    doctor: 'maintenance',
    'home/leave': 'maintenance',
    'home/reset': 'maintenance',
    'home/prune': 'maintenance',
    audit: 'maintenance'
  }).map(([command, layer]) => [`cli/commands/${command}.ts`, [layer]])
)

/** A pure layer takes time, chance and speech from its caller. */
const IMPURE =
  /\b(Date\.now|new Date\(\)|Math\.random|crypto\.(?:random\w+|getRandomValues)|performance\.|setTimeout|setInterval|setImmediate|queueMicrotask|(?<![.\w])fetch\(|(?<![.\w])(?:process|console)[.[]|(?<![.\w])Buffer\b|globalThis\b|new (?:URL|TextEncoder|TextDecoder)\b)/

const MAX_LINES = 500
const BODY = String.raw`(?:(?!\n\s*(?:import|export)\b)[\w*$\s{},])+?`
const IMPORT = new RegExp(
  String.raw`^[ \t]*(?:import|export)\s+(type\s+(?!from\s))?(?:${BODY}\s?from\s*)?['"]([^'"\n]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)`,
  'gm'
)
const VALUE = /^export (?:default|const|let|var|(?:async )?function|(?:abstract )?class|enum)\b/m

/**
 * Every import of a file: its specifier, whether it is type-only, whether it is lazy.
 * @param {string} text source
 * @returns {Generator<{ spec: string, type: boolean, lazy: boolean }>}
 */
export function* importsOf(text) {
  for (const [, type, from, lazy] of text.matchAll(IMPORT)) {
    yield { spec: from ?? lazy, type: Boolean(type), lazy: lazy !== undefined }
  }
}

/** The npm package of a specifier; null for a relative one or a built-in. */
export function packageOf(spec) {
  if (spec.startsWith('.') || spec.startsWith('node:')) return null
  return spec
    .split('/')
    .slice(0, spec[0] === '@' ? 2 : 1)
    .join('/')
}

/** The first level of the path, the first two below adapters; '' for files of src/ itself. */
function layerOf(rel) {
  const parts = rel.split('/')
  if (parts.length === 1) return ''
  return parts[0] === 'adapters' ? `adapters/${parts[1]}` : parts[0]
}

function ruleOf(name) {
  const layer = layerOf(name)
  const rule = LAYERS[layer] ?? (layer.startsWith('adapters/') ? LAYERS['adapters/*'] : null)
  const more = SUBJECTS[name.split('/').slice(0, 2).join('/')]
  return more === undefined || rule === null ? rule : { ...rule, npm: [...rule.npm, ...more] }
}

/** The feature of a file of src/node, '' for one that wires them, null for any other file. */
function featureOf(rel) {
  const parts = rel.split('/')
  return parts[0] !== 'node' ? null : parts.length === 2 ? '' : parts[1]
}

function faultOfFeature(from, to) {
  if (from === null || from === '' || to === null || to === from) return null
  const allowed = FEATURES[from]
  if (allowed === undefined) return `node/${from} is no feature`
  return allowed.includes(to) ? null : `node/${from} must not import values of node${to === '' ? '' : `/${to}`}`
}

function faultOfImport({ file, root, layer, rule }, { spec, type, lazy }) {
  if (rule.typesOnly && !type) return `ports hold types only, imports ${spec} as a value`
  if (spec.startsWith('node:')) return rule.node ? null : `must not touch ${spec}`
  const pkg = packageOf(spec)
  if (pkg !== null) return rule.npm === '*' || rule.npm.includes(pkg) ? null : `must not use package ${pkg}`
  const target = path.posix.relative(root, path.posix.join(path.posix.dirname(file), spec))
  const fault = type ? null : faultOfFeature(featureOf(path.posix.relative(root, file)), featureOf(target))
  if (fault !== null) return `${fault} (${spec})`
  const to = layerOf(target)
  if (to === layer || rule.layers === '*' || rule.layers.includes(to) || (type && rule.types?.includes(to))) return null
  if ((lazy || type) && EXCEPT[path.posix.relative(root, file)]?.includes(to)) return null
  return `${layer || 'root'} must not import ${to || 'root'} (${spec})`
}

/** Comments say what they like. */
function withoutComments(text) {
  return text.replace(/\/\*[\s\S]*?\*\/|(?<![:'"`\w])\/\/.*$/gm, '')
}

function* faultsOf(place, text) {
  const { rule } = place
  if (text.split('\n').length - 1 > MAX_LINES) yield `longer than ${MAX_LINES} lines`
  const code = withoutComments(text)
  if (rule.typesOnly && VALUE.test(code)) yield 'ports hold types only, exports a value'
  const impure = rule.pure ? IMPURE.exec(code) : null
  if (impure !== null) yield `a pure layer reaches for ${impure[1]}`
  for (const one of importsOf(code)) {
    const fault = faultOfImport(place, one)
    if (fault !== null) yield fault
  }
}

/**
 * Checks every source file.
 * @param {string} root the directory of the layers
 * @returns {string[]} one line for each broken rule
 */
export function check(root = 'src') {
  const names = fs.readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name))
  if (names.length === 0) return [`${root}: no files`]
  const broken = []
  for (const name of names.sort()) {
    const file = path.posix.join(root, name)
    const rule = ruleOf(name)
    if (rule === null) broken.push(`${file}: lies in no layer`)
    else
      for (const fault of faultsOf({ file, root, layer: layerOf(name), rule }, fs.readFileSync(file, 'utf8')))
        broken.push(`${file}: ${fault}`)
  }
  return broken
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const broken = check(process.argv[2])
  for (const line of broken) console.error(line)
  console.log(broken.length > 0 ? `${broken.length} broken rules` : 'layers: clean')
  process.exitCode = broken.length > 0 ? 1 : 0
}
