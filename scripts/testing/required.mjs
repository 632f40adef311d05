// Loads packages in CommonJS by `require`. For an `import` of one, Node.js parses its source a second time, to find the
// names that it exports: a tenth of the processor time of a start.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const require = createRequire(import.meta.url)
/** Prefix of the modules that stand for packages: no other plugin and no file has such an id. */
const PREFIX = '\0required:'
const IS_NAME = /^[A-Za-z_$][\w$]*$/

/** Whether an import of this package, or of a file in it, loads CommonJS. */
export function isRequired(id) {
  if (id.startsWith('node:')) return false
  const file = fileURLToPath(import.meta.resolve(id))
  return file.endsWith('.cjs') || (file.endsWith('.js') && typeOf(path.dirname(file)) !== 'module')
}

/** The type that the nearest package.json gives to the .js files of a directory. */
function typeOf(dir) {
  const file = path.join(dir, 'package.json')
  if (fs.existsSync(file)) return JSON.parse(fs.readFileSync(file, 'utf8')).type
  return typeOf(path.dirname(dir))
}

/** A plugin of the bundler. */
export const REQUIRED = {
  name: 'required',
  resolveId(id) {
    return /^[^./\0]/.test(id) && isRequired(id) ? PREFIX + id : null
  },
  load(id) {
    return id.startsWith(PREFIX) ? moduleOf(id.slice(PREFIX.length)) : null
  }
}

/** A module that exports what the package does. */
function moduleOf(name) {
  const names = Object.keys(require(name)).filter((one) => IS_NAME.test(one) && one !== 'default')
  return [
    `import { createRequire } from 'node:module'`,
    `const all = createRequire(import.meta.url)(${JSON.stringify(name)})`,
    'export default all',
    ...names.map((one, at) => `const v${at} = all.${one}\nexport { v${at} as ${one} }`)
  ].join('\n')
}
