// Compiles src/ and test/ into build/, file by file and without a check of types, which `npm run check` makes.
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { VERSION } from 'rolldown'
import { transformSync } from 'rolldown/utils'

/** Where compiled tests stand. */
export const OUT = 'build'
const SOURCES = ['src', 'test']
/** What the declarations in dist/types/ were made of. */
export const BUILD_INFO = path.join(OUT, '.types.tsbuildinfo')
/** Names the options that build/ was compiled with. */
const KEY = path.join(OUT, '.options')
/** Milliseconds that a time loses when it is set on a file. */
const CLOCK_MS = 1

/** Options of a file alone: the target and the style of imports of the build. */
function optionsOfFile() {
  const { target, verbatimModuleSyntax } = JSON.parse(fs.readFileSync('tsconfig.json', 'utf8')).compilerOptions
  return {
    target: target.toLowerCase(),
    typescript: { onlyRemoveTypeImports: verbatimModuleSyntax },
    // Any `tsconfig.json` in reach is read otherwise, for each file.
    tsconfig: false
  }
}

/** Compiles the files of `roots` that changed. False on a syntax error. */
export function compile(roots = SOURCES) {
  const options = optionsOfFile()
  dropOthers(JSON.stringify([VERSION, options]))
  const files = roots.flatMap((root) => below(root)).filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
  const outputs = new Set(files.map(outputOf))
  for (const root of roots) for (const file of below(path.join(OUT, root))) if (!outputs.has(file)) fs.rmSync(file)
  const bad = files.filter((file) => !isCurrent(file) && !compileFile(file, options))
  return bad.length === 0
}

/** Compiles, then loads one compiled module. */
export function compileTests(file) {
  if (!compile()) throw new Error('the tests do not compile')
  return import(pathToFileURL(path.resolve(OUT, file)).href)
}

/** Removes what was compiled with other options. */
function dropOthers(key) {
  if (fs.existsSync(KEY) && fs.readFileSync(KEY, 'utf8') === key) return
  fs.rmSync(OUT, { recursive: true, force: true })
  fs.mkdirSync(OUT)
  fs.writeFileSync(KEY, key)
}

function below(root) {
  if (!fs.existsSync(root)) return []
  const entries = fs.readdirSync(root, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name))
}

function outputOf(file) {
  return path.join(OUT, file.replace(/\.ts$/, '.js'))
}

/** An output has the time of its source: one that somebody changed is not current. */
function isCurrent(file) {
  const output = fs.statSync(outputOf(file), { throwIfNoEntry: false })
  return output !== undefined && Math.abs(output.mtimeMs - fs.statSync(file).mtimeMs) <= CLOCK_MS
}

function compileFile(file, options) {
  const { text, faults } = transpile(file, fs.readFileSync(file, 'utf8'), options)
  // Without an output the next run tries again, and fails again.
  if (faults !== '') {
    console.error(faults)
    return false
  }
  const output = outputOf(file)
  fs.mkdirSync(path.dirname(output), { recursive: true })
  fs.writeFileSync(output, text)
  const { atime, mtime } = fs.statSync(file)
  fs.utimesSync(output, atime, mtime)
  return true
}

/**
 * The ES module of one TypeScript file.
 * @returns {{ text: string, faults: string }} `faults` lists syntax errors, or is empty
 */
export function transpile(file, source, options = optionsOfFile()) {
  const { code, errors } = transformSync(file, source, options)
  return { text: code, faults: errors.map(({ message, codeframe }) => codeframe ?? `${file}: ${message}`).join('\n') }
}
