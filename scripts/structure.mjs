#!/usr/bin/env node
// Measures how the source is laid out: `node scripts/structure.mjs [--list]` prints a table; with --list also what each
// figure counts.
// Exit code 1 when a figure is over its cap. The caps may only shrink.
import fs from 'node:fs'
import path from 'node:path'
import ts from 'typescript'

/** Words that name nothing in this field: no identifier and no file of src has them. */
const BANNED = new Set(
  'tale tales seat seats seated seating shelf said wish wished desk door courier beat road roads way ways news course book room rooms told heard held'.split(
    ' '
  )
)
/** Nouns of our own that comments and texts of src do not use either. Quoted, they stand on the wire or in a ledger. */
const PRIVATE = /(?<!['"_.-])\b(?:tales?|seats?|shelf|shelves|courier|road|roads)\b(?!['"]|: \()/gi
/** Words of our own that no text with spaces in src has, as commands print them. */
const UNPRINTED = /\b(?:leases?|leased|epochs?|(?:given|gives?|gave) (?:\w+ )?back)\b/i
/** Relative clauses in the place of a noun ("what waits", "for whoever asks"), and "so many". */
const CLAUSES = [
  /^(?:What|Whatever|Whoever|Who|Those)\b.*[^?]$/,
  /\b(?:of|by|for|with|from|to|in|than|and|or|that|as|on) (?:what|whatever|whoever|who|those (?:that|who))\b/,
  /\bso many\b/i
]
/** Words of our own that titles of tests and messages of assertions do not use. */
const TITLE_WORDS =
  /\b(?:tales?|seats?|seated|shelf|said|wish(?:es|ed)?|desk|doors?|courier|roads?|news|books?|rooms?|told|tells?|heard|hears?|held)\b/i
/** Clauses in the place of a noun in a title, which begins in lower case. */
const TITLE_CLAUSES = [
  /^(?:what|who|those)\b/,
  /[,;:] (?:what|those (?:that|who))\b/,
  /\b(?:whatever|whoever|whomever)\b/,
  ...CLAUSES.slice(1)
]
/** Names that stand on the wire or in a ledger. */
const BOUND = new Set([
  'src/ports/document-api.ts told',
  'src/node/peers/query.ts way',
  'src/node/swarms/consensus/vote-store.ts seated'
])

const CAPS = {
  'type names declared in two or more files': 3,
  'files of src/node with one importer': 19,
  'files in the largest folder': 25,
  'classes over 250 lines or 20 public members': 0,
  'lines over the line width': 0,
  'constructors with more than 12 dependencies': 0,
  'names with a banned word': 0,
  'private words in texts': 0,
  'private words in printed texts': 0,
  'sentences of comments with a clause as a noun': 0,
  'titles and messages of tests with a private word or a clause as a noun': 0,
  'symbols of src that only tests use': 7,
  'words of README': 1300,
  'words of docs/ARCHITECTURE.md': 1100,
  'words of docs': 37_000
}

function filesBelow(dir, end) {
  return fs
    .readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(end))
    .map((entry) => path.posix.join(entry.parentPath, entry.name))
    .sort()
}

function wordsOf(name) {
  return name
    .replaceAll(/([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$1$3 $2')
    .split(/[^A-Za-z]+/)
    .map((word) => word.toLowerCase())
}

const isNamed = (node) => node.name !== undefined && (ts.isIdentifier(node.name) || ts.isPrivateIdentifier(node.name))
const isDeclaration = (node) =>
  isNamed(node) &&
  !ts.isImportSpecifier(node) &&
  !ts.isExportSpecifier(node) &&
  !ts.isPropertyAccessExpression(node) &&
  !ts.isShorthandPropertyAssignment(node) &&
  !ts.isPropertyAssignment(node) &&
  !ts.isMetaProperty(node) &&
  !ts.isNamespaceExport(node)
const isType = (node) =>
  ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)
const isPrivate = (member) => member.name !== undefined && ts.isPrivateIdentifier(member.name)

/** A string with spaces, in quotes or in backquotes, without the expressions in it; null for any other node. */
function printedText(node) {
  const parts = ts.isTemplateExpression(node)
    ? [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)]
    : ts.isStringLiteralLike(node)
      ? [node.text]
      : []
  const text = parts.join('\0')
  return text.includes(' ') ? text : null
}

function privateWords(file, text) {
  return [...text.matchAll(PRIVATE)].map(
    ({ index, 0: word }) => `${file}:${text.slice(0, index).split('\n').length} ${word}`
  )
}

/** The names in a union of string literals, or the members that `keyof` gives. */
function namesIn(node, types) {
  if (ts.isUnionTypeNode(node)) return node.types.flatMap((one) => namesIn(one, types))
  if (ts.isTypeOperatorNode(node)) return [...membersOf(node.type, types)]
  return ts.isLiteralTypeNode(node) && ts.isStringLiteral(node.literal) ? [node.literal.text] : []
}

/** The names of the members of a type, read from the declarations of src alone. */
function membersOf(node, types) {
  if (node === undefined) return new Set()
  if (ts.isTypeLiteralNode(node)) return new Set(node.members.map((member) => member.name.text))
  if (ts.isIntersectionTypeNode(node)) return new Set(node.types.flatMap((one) => [...membersOf(one, types)]))
  const name = (node.typeName ?? node.expression)?.text
  const [from, keys] = node.typeArguments ?? []
  if (name === 'Pick') return new Set(namesIn(keys, types))
  const left = (all, without) => new Set([...all].filter((one) => !without.includes(one)))
  if (name === 'Omit') return left(membersOf(from, types), namesIn(keys, types))
  const declared = types.get(name)
  if (declared === undefined || ts.isClassDeclaration(declared)) return new Set()
  if (ts.isTypeAliasDeclaration(declared)) return membersOf(declared.type, types)
  const inherited = (declared.heritageClauses ?? []).flatMap(({ types: bases }) =>
    bases.flatMap((one) => [...membersOf(one, types)])
  )
  return new Set([...declared.members.map((member) => member.name.text), ...inherited])
}

/**
 * Constructors that take an object of dependencies as their first parameter, a type with a name that ends in Deps, and
 * how many.
 */
function constructors(files) {
  const types = new Map(files.flatMap(({ declared }) => declared.map((node) => [node.name.text, node])))
  return [...types.values()].filter(ts.isClassDeclaration).flatMap((node) => {
    const [first] = node.members.find(ts.isConstructorDeclaration)?.parameters ?? []
    const isDeps = first?.type !== undefined && /Deps\b/.test(first.type.getText())
    return isDeps
      ? [{ name: `${node.getSourceFile().fileName} ${node.name.text}`, count: membersOf(first.type, types).size }]
      : []
  })
}

/** Every comment of a file: its line and its text without the marks of a comment. */
function commentsOf(source) {
  const { text } = source
  const found = new Map()
  const visit = (node) => {
    const ranges = [
      ...(ts.getLeadingCommentRanges(text, node.pos) ?? []),
      ...(ts.getTrailingCommentRanges(text, node.end) ?? [])
    ]
    for (const { pos, end } of ranges)
      found.set(pos, text.slice(pos, end).replaceAll(/^\/\*+|\*\/$|^\s*(?:\*|\/\/) ?/gm, ' '))
    for (const child of node.getChildren(source)) visit(child)
  }
  visit(source)
  return [...found].map(([pos, words]) => ({
    line: source.getLineAndCharacterOfPosition(pos).line + 1,
    words: words.replaceAll(/\s+/g, ' ').trim()
  }))
}

const LITERALS = new Set([
  ts.SyntaxKind.StringLiteral,
  ts.SyntaxKind.NoSubstitutionTemplateLiteral,
  ts.SyntaxKind.TemplateExpression,
  ts.SyntaxKind.RegularExpressionLiteral
])
/** Comments that stay on one line: they are for tools, or one word. */
const UNBREAKABLE = /^\s*(?:\/\/|\/?\*+) *(?:biome-ignore|oxlint-|@ts-|\S+$)/

/**
 * The lines of a file over a width, in columns. A literal stays whole: a line that is too long by its longest literal
 * alone does not count.
 */
function longLines(file, width) {
  const text = fs.readFileSync(file, 'utf8')
  const lines = text.split('\n')
  if (!lines.some((line) => line.length > width)) return []
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const longest = new Map()
  const visit = (node) => {
    if (!LITERALS.has(node.kind)) return ts.forEachChild(node, visit)
    const [start, end] = [node.getStart(source), node.end].map((at) => source.getLineAndCharacterOfPosition(at))
    for (let at = start.line; at <= end.line; at++) {
      const columns = (at === end.line ? end.character : lines[at].length) - (at === start.line ? start.character : 0)
      longest.set(at, Math.max(longest.get(at) ?? 0, columns))
    }
  }
  visit(source)
  const isOver = (line, at) => line.length - (longest.get(at) ?? 0) > width && !UNBREAKABLE.test(line)
  return lines.flatMap((line, at) => (isOver(line, at) ? [`${file}:${at + 1} ${line.length}`] : []))
}

function clausesOf(source) {
  return commentsOf(source).flatMap(({ line, words }) =>
    words
      .split(/(?<=[.:;!?]) /)
      .filter((sentence) => CLAUSES.some((clause) => clause.test(sentence)))
      .map((sentence) => `${source.fileName}:${line} ${sentence}`)
  )
}

/** Arguments of assertions before their message. */
const ASSERTIONS = { ok: 1, absent: 1, is: 2, not: 2, alike: 2, unlike: 2, pass: 0, fail: 0, comment: 0 }
/** Arguments of functions of the tests before a title or a message. */
const TITLED = { test: 0, 'group.test': 0, check: 0, demand: 1, untilTrue: 1, untilText: 2 }

/** The title of a test, or the message of an assertion; undefined for any other call. */
function titleIn(call, source) {
  const name = call.expression.getText(source)
  const [object, method] = name.split('.')
  if (object === 't') return call.arguments[ASSERTIONS[method]]
  return call.arguments[object === 'test' ? 0 : TITLED[name]]
}

/** The text of a literal or of literals put together, without the expressions of a template. */
function literalText(node) {
  if (node === undefined) return ''
  if (ts.isBinaryExpression(node)) return literalText(node.left) + literalText(node.right)
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text
  return ts.isTemplateExpression(node)
    ? [node.head, ...node.templateSpans.map(({ literal }) => literal)].map(({ text }) => text).join('')
    : ''
}

/** Titles of tests and messages of assertions in a file that need other words. */
function privateTitles(file) {
  const source = ts.createSourceFile(file, fs.readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
  const found = []
  const visit = (node) => {
    const title = ts.isCallExpression(node) ? literalText(titleIn(node, source)) : ''
    if (TITLE_WORDS.test(title) || TITLE_CLAUSES.some((clause) => clause.test(title)))
      found.push(`${file}:${source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1} ${title}`)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** Names that a statement exports itself. */
function exportsOf(statement) {
  if (!statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) return []
  if (!ts.isVariableStatement(statement)) return statement.name === undefined ? [] : [statement.name.text]
  return statement.declarationList.declarations.flatMap(({ name }) => (ts.isIdentifier(name) ? [name.text] : []))
}

/** What a file takes of others: `<file> <name>`, or `<file> *` for all of it. */
function usesOf(file, source) {
  const uses = new Set()
  const visit = (node) => {
    const isLazy = ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
    const given = isLazy ? node.arguments[0] : ts.isImportTypeNode(node) ? node.argument.literal : node.moduleSpecifier
    if (given?.text?.startsWith('.')) {
      const target = path.posix.join(path.posix.dirname(file), given.text).replace(/\.js$/, '.ts')
      const listed = node.importClause?.namedBindings?.elements ?? node.exportClause?.elements
      for (const one of listed ?? []) uses.add(`${target} ${(one.propertyName ?? one.name).text}`)
      if (listed === undefined) uses.add(`${target} *`)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return uses
}

/**
 * Exported symbols that no other file of src imports and their own file does not use. Public entries are meant for
 * others.
 */
function onlyTested(files) {
  const used = new Set(files.flatMap(({ uses }) => [...uses]))
  return files.flatMap(({ file, exports, names }) => {
    if (/^src\/(?:[\w-]+|cli\/main)\.ts$/.test(file) || used.has(`${file} *`)) return []
    return exports
      .filter((name) => names.get(name) === 1 && !used.has(`${file} ${name}`))
      .map((name) => `${file} ${name}`)
  })
}

/** What one file declares and imports. */
function read(file) {
  const text = fs.readFileSync(file, 'utf8')
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const found = {
    file,
    lines: text.split('\n').length - 1,
    imports: new Map(),
    types: [],
    declared: [],
    banned: [],
    printed: [],
    classes: [],
    exports: source.statements.flatMap(exportsOf),
    names: new Map(),
    uses: usesOf(file, source),
    texts: privateWords(file, text),
    clauses: clausesOf(source)
  }
  const visit = (node) => {
    collect(found, source, node)
    ts.forEachChild(node, visit)
  }
  visit(source)
  if (wordsOf(path.basename(file, '.ts')).some((word) => BANNED.has(word))) found.banned.push(file)
  return found
}

/** Adds what one node of the syntax tree imports, names or declares. */
function collect(found, source, node) {
  const { file } = found
  const lineOf = (at) => source.getLineAndCharacterOfPosition(at).line
  if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier?.text.startsWith('.')) {
    const target = path.posix.join(path.posix.dirname(file), node.moduleSpecifier.text).replace(/\.js$/, '.ts')
    found.imports.set(target, node.getText(source))
  }
  const printed = printedText(node)
  if (printed !== null && UNPRINTED.test(printed))
    found.printed.push(`${file}:${lineOf(node.getStart(source)) + 1} ${printed.slice(0, 80)}`)
  if (ts.isIdentifier(node)) found.names.set(node.text, (found.names.get(node.text) ?? 0) + 1)
  if (isType(node)) {
    found.types.push(node.name.text)
    found.declared.push(node)
  }
  if (
    isDeclaration(node) &&
    wordsOf(node.name.text).some((word) => BANNED.has(word)) &&
    !BOUND.has(`${file} ${node.name.text}`)
  )
    found.banned.push(`${file}:${lineOf(node.getStart(source)) + 1} ${node.name.text}`)
  if (ts.isClassDeclaration(node)) {
    const open = node.members.filter((member) => !isPrivate(member) && !ts.isConstructorDeclaration(member)).length
    found.classes.push({
      name: `${file} ${node.name?.text}`,
      lines: lineOf(node.end) - lineOf(node.getStart(source)) + 1,
      open
    })
  }
}

/** Texts between spaces of Markdown files. */
function textsOf(files) {
  return files.flatMap((file) => fs.readFileSync(file, 'utf8').split(/\s+/).filter(Boolean))
}

/** Words of Markdown files: what has a letter or a digit. The rules of a table and the dash of a list are no words. */
function wordCount(files) {
  return textsOf(files).filter((text) => /[\p{L}\p{N}]/u.test(text)).length
}

/** For each key that a function gives of the items, those items. */
function groupBy(items, keysOf) {
  const groups = new Map()
  for (const item of items) for (const key of keysOf(item)) groups.set(key, [...(groups.get(key) ?? []), item])
  return groups
}

function figuresOfFiles(files) {
  const folders = [...groupBy(files, ({ file }) => [path.dirname(file)])].toSorted((a, b) => b[1].length - a[1].length)
  const longest = files.toSorted((a, b) => b.lines - a.lines)
  const large = files.flatMap(({ classes }) => classes).filter(({ lines, open }) => lines > 250 || open > 20)
  const crowded = constructors(files).filter(({ count }) => count > 12)
  const repeated = [...groupBy(files, ({ types }) => new Set(types))].filter(([, where]) => where.length > 1)
  return [
    [
      'files in the largest folder',
      folders[0][1].length,
      folders.slice(0, 5).map(([dir, { length }]) => `${dir},${length}`)
    ],
    ['lines of the longest file', longest[0].lines, longest.slice(0, 5).map(({ file, lines }) => `${file} ${lines}`)],
    ['classes over 250 lines or 20 public members', large.length, large.map((one) => Object.values(one).join(', '))],
    [
      'constructors with more than 12 dependencies',
      crowded.length,
      crowded.map((one) => Object.values(one).join(', '))
    ],
    [
      'type names declared in two or more files',
      repeated.length,
      repeated.map(([name, where]) => `${name}: ${filesOf(where).join(' ')}`)
    ],
    ['symbols of src that only tests use', onlyTested(files).length, onlyTested(files)],
    ['names with a banned word', files.flatMap(({ banned }) => banned).length, files.flatMap(({ banned }) => banned)],
    ['private words in texts', files.flatMap(({ texts }) => texts).length, files.flatMap(({ texts }) => texts)],
    [
      'private words in printed texts',
      files.flatMap(({ printed }) => printed).length,
      files.flatMap(({ printed }) => printed)
    ],
    [
      'sentences of comments with a clause as a noun',
      files.flatMap(({ clauses }) => clauses).length,
      files.flatMap(({ clauses }) => clauses)
    ],
    ['lines of src', files.reduce((sum, { lines }) => sum + lines, 0), []]
  ]
}

function figuresOfNode(files) {
  const importers = groupBy(files, ({ imports }) => imports.keys())
  const node = files.filter(({ file }) => file.startsWith('src/node/'))
  const single = node.filter(({ file }) => importers.get(file)?.length === 1)
  const tested = new Set(
    filesBelow('test', '.test.ts').map((file) =>
      file.replace(/^test\//, 'src/').replace(/(\.[\w-]+)*\.test\.ts$/, '.ts')
    )
  )
  const untested = node.filter(({ file }) => !tested.has(file))
  const core = files.filter(({ imports }) => [...imports.values()].some((text) => /\bNodeCore\b/.test(text)))
  return [
    [
      'files of src/node with one importer',
      single.length,
      single.map(({ file, lines }) => `${file} ${lines} < ${importers.get(file)[0].file}`)
    ],
    [
      'files of src/node with a test of their name',
      `${node.length - untested.length} of ${node.length}`,
      filesOf(untested)
    ],
    ['files that import the whole NodeCore', core.length, filesOf(core)]
  ]
}

function filesOf(found) {
  return found.map(({ file }) => file)
}

/** The files that the formatter formats, and their lines over its width. */
function figuresOfLines() {
  const { lineWidth } = JSON.parse(fs.readFileSync('biome.json', 'utf8')).formatter
  const dirs = ['bin', 'scripts', 'src', 'test'].filter((dir) => fs.existsSync(dir))
  const files = dirs.flatMap((dir) => ['.ts', '.js', '.mjs'].flatMap((end) => filesBelow(dir, end)))
  const long = files.flatMap((file) => longLines(file, lineWidth))
  return [['lines over the line width', long.length, long]]
}

/** Each figure: its name, its value, and what it counts. */
function measure() {
  const files = filesBelow('src', '.ts')
    .filter((file) => !file.endsWith('.d.ts'))
    .map(read)
  const docs = filesBelow('docs', '.md')
  const titles = filesBelow('test', '.ts').flatMap(privateTitles)
  return [
    ...figuresOfFiles(files),
    ...figuresOfLines(),
    ...figuresOfNode(files),
    ['titles and messages of tests with a private word or a clause as a noun', titles.length, titles],
    ['words of README', wordCount(['README.md']), []],
    ['words of docs/ARCHITECTURE.md', wordCount(['docs/ARCHITECTURE.md']), []],
    ['words of docs', wordCount(docs), docs.map((file) => `${file} ${wordCount([file])}`)],
    ['marks of docs that are no words', textsOf(docs).length - wordCount(docs), []]
  ]
}

const figures = measure()
let isOver = false
for (const [name, value, list] of figures) {
  const cap = CAPS[name]
  const over = cap !== undefined && value > cap
  isOver ||= over
  console.log(
    `${String(value).padStart(11)}  ${name}${cap === undefined ? '' : ` (at most ${cap})`}${over ? '  OVER' : ''}`
  )
  if (process.argv.includes('--list') || over) for (const one of list) console.log(`             ${one}`)
}
process.exitCode = isOver ? 1 : 0
