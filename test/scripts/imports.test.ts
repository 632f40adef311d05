import fs from 'node:fs'
import path from 'node:path'
import test from 'brittle'

/** Static and dynamic imports of what is compiled: the names, and the file. */
const IMPORTS =
  /(?:import|const)\s*\{([^}]*)\}\s*(?:from|=\s*await import\()\s*(?:new URL\()?['"`]([^'"`]*build\/[^'"`]+\.js)['"`]/g

function scripts(): string[] {
  return fs
    .readdirSync('scripts', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.mjs'))
    .map((name) => path.join('scripts', name))
}

/** The source of a compiled file. */
function sourceOf(compiled: string): string {
  return compiled.slice(compiled.indexOf('build/') + 'build/'.length).replace(/\.js$/, '.ts')
}

test('no script names a file below dist, which has bundles only', (t) => {
  for (const script of scripts())
    t.alike(fs.readFileSync(script, 'utf8').match(/[^\s'"`]*\bdist\/(?!types\b)[\w$]+\/[^\s'"`]*/g) ?? [], [], script)
})

test('every name that a script imports of the compiled sources is exported there', (t) => {
  let count = 0
  for (const script of scripts()) {
    for (const [, names = '', compiled = ''] of fs.readFileSync(script, 'utf8').matchAll(IMPORTS)) {
      const source = sourceOf(compiled)
      const text = fs.existsSync(source) ? fs.readFileSync(source, 'utf8') : null
      if (text === null) t.fail(`${script} imports ${compiled}, which has no source`)
      for (const one of names.split(',')) {
        const [name = ''] = one.trim().split(/\s+as\s+|\s*:\s*/)
        if (name === '' || text === null) continue
        count++
        const isExported = new RegExp(`export [^\\n]*\\b${name}\\b|export \\{[^}]*\\b${name}\\b`).test(text)
        if (!isExported) t.fail(`${script} imports ${name}, which ${source} does not export`)
      }
    }
  }
  t.ok(count > 30, `${count} names`)
})
