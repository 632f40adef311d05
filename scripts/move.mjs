#!/usr/bin/env node
// Moves files and rewrites what names them: `node scripts/move.mjs <list>`, each line of the list `from to`, relative to the repository.
// Imports in src, test, scripts and bin, and paths in docs, lists of mutants and settings. To be deleted when the folders are done.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

const CODE = /\.(?:tsx?|mjs|js)$/
const SPECIFIER = /((?:\bfrom|\bimport)\s*\(?\s*|\bnew URL\()(['"])(\.{1,2}\/[^'"\n]+)\2/g

function filesIn(...dirs) {
  return dirs.flatMap((dir) =>
    fs
      .readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.posix.join(entry.parentPath, entry.name))
  )
}

/** The file that a specifier names: sources are imported by the name of what is compiled of them. */
function named(file, specifier) {
  const target = path.posix.join(path.posix.dirname(file), specifier)
  const source = [target, target.replace(/\.js$/, '.ts'), target.replace(/\.js$/, '.tsx')].find((one) => fs.existsSync(one))
  return source === undefined ? null : { source, isCompiled: source !== target }
}

/** The text of a file at its new place, with the new places of what it imports. */
function rewritten(file, moves) {
  const place = moves.get(file) ?? file
  return fs.readFileSync(file, 'utf8').replace(SPECIFIER, (...match) => {
    const [whole, lead, quote, specifier] = match
    const target = named(file, specifier)
    if (target === null || (place === file && !moves.has(target.source))) return whole
    const to = moves.get(target.source) ?? target.source
    const relative = path.posix.relative(path.posix.dirname(place), target.isCompiled ? to.replace(/\.tsx?$/, '.js') : to)
    return `${lead}${quote}${relative.startsWith('.') ? relative : `./${relative}`}${quote}`
  })
}

/** Names of a file in texts: its path, and that of a test without `test/` and without its end. */
function textNames(from, to) {
  const names = [[from, to]]
  if (from.startsWith('test/')) {
    names.push([from.slice('test/'.length), to.slice('test/'.length)])
    const bare = (file) => file.slice('test/'.length).replace(/\.test\.ts$/, '')
    names.push([`'${bare(from)}'`, `'${bare(to)}'`])
  }
  if (from.startsWith('src/')) names.push([`\`${from.slice('src/'.length)}`, `\`${to.slice('src/'.length)}`])
  return names
}

function renamed(text, names) {
  const found = new RegExp(
    `(?<![\\w-]|\\w/)(?:${names.map(([from]) => from.replaceAll(/[.+*?^$()[\]{}|\\]/g, String.raw`\$&`)).join('|')})(?![\\w-])`,
    'g'
  )
  const byName = new Map(names)
  return text.replace(found, (one) => byName.get(one) ?? one)
}

function main(list) {
  const lines = fs.readFileSync(list, 'utf8').split('\n').filter(Boolean)
  const moves = new Map(lines.map((line) => line.split(' ')))
  const code = filesIn('src', 'test', 'scripts', 'bin').filter((file) => CODE.test(file))
  const texts = new Map(code.map((file) => [file, rewritten(file, moves)]))
  for (const [from, to] of moves) {
    fs.mkdirSync(path.dirname(to), { recursive: true })
    execFileSync('git', ['mv', from, to])
  }
  const names = [...moves].flatMap(([from, to]) => textNames(from, to))
  for (const [file, text] of texts) fs.writeFileSync(moves.get(file) ?? file, file.startsWith('src/') ? text : renamed(text, names))
  const prose = [
    ...filesIn('docs'),
    'README.md',
    'CHANGELOG.md',
    'SECURITY.md',
    'knip.json',
    'package.json',
    'biome.json',
    '.oxlintrc.json'
  ]
  for (const file of prose) {
    const before = fs.readFileSync(file, 'utf8')
    const after = renamed(before, names)
    if (after !== before) fs.writeFileSync(file, after)
  }
}

main(process.argv[2])
