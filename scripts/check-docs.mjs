#!/usr/bin/env node
// Checks that every exported symbol of src/ has a doc comment, and so has every public method of an exported class
// that stands for itself (one that implements a port is documented there); and that every `{@link X}` names something
// of src/.
// Prints one line for each fault. Exit code: 0 clean, 1 broken.
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/**
 * Checks every source file but ambient declarations.
 * @param {string} root directory of the sources
 * @returns {string[]} one line for each symbol without a doc comment, and for each link to a name that is nowhere
 * declared
 */
export function check(root = 'src') {
  const names = fs
    .readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.d.ts'))
  const sources = names.sort().map((name) => {
    const file = path.posix.join(root, name)
    return ts.createSourceFile(file, fs.readFileSync(file, 'utf8'), ts.ScriptTarget.ES2023, true)
  })
  const declared = new Set(sources.flatMap((source) => [...declaredIn(source)]))
  return sources.flatMap((source) => [...undocumentedLines(source), ...brokenLinks(source, declared)])
}

function undocumentedLines(source) {
  return undocumented(source).map(
    ({ node, name }) => `${source.fileName}:${lineOf(source, node)} ${name} has no doc comment`
  )
}

/** Every name that a file declares, of members and variables too. */
function declaredIn(source) {
  const names = new Set()
  const visit = (node) => {
    const { name } = node
    if (
      name !== undefined &&
      (ts.isIdentifier(name) || ts.isPrivateIdentifier(name)) &&
      !ts.isPropertyAccessExpression(node)
    )
      names.add(name.text)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return names
}

function brokenLinks(source, declared) {
  const links = [...source.text.matchAll(/\{@link ([\w.#]+)/g)]
  const isBroken = ([, link]) => link.split(/[.]|(?=#)/).some((name) => !declared.has(name))
  return links
    .filter(isBroken)
    .map(
      ({ index, 1: link }) =>
        `${source.fileName}:${source.getLineAndCharacterOfPosition(index).line + 1} {@link ${link}} names nothing`
    )
}

/** Exported declarations of a file, and members of exported classes, that nobody described. */
function undocumented(source) {
  const exported = exportedNames(source)
  return source.statements
    .flatMap((statement) => namesOf(statement).map((name) => ({ node: statement, name })))
    .filter(({ node, name }) => isExported(node) || exported.has(name))
    .flatMap(({ node, name }) => [...(isDocumented(node) ? [] : [{ node, name }]), ...members(node, name)])
}

/** Names that `export { a, b }` gives away without a module of their own. */
function exportedNames(source) {
  const names = new Set()
  for (const statement of source.statements) {
    if (!ts.isExportDeclaration(statement) || statement.moduleSpecifier !== undefined) continue
    for (const one of statement.exportClause?.elements ?? []) names.add((one.propertyName ?? one.name).text)
  }
  return names
}

function namesOf(statement) {
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map((one) => one.name.getText())
  if (ts.isExportAssignment(statement)) return ['default']
  return statement.name === undefined ? [] : [statement.name.text]
}

function isExported(node) {
  return ts.isExportAssignment(node) || (node.modifiers ?? []).some((one) => one.kind === ts.SyntaxKind.ExportKeyword)
}

function isDocumented(node) {
  return ts.getJSDocCommentsAndTags(node).some((one) => ts.isJSDoc(one) && textOf(one).trim() !== '')
}

function textOf(doc) {
  return (ts.getTextOfJSDocComment(doc.comment) ?? '') + (doc.tags ?? []).map((tag) => tag.getText()).join('')
}

function members(node, name) {
  if (!ts.isClassDeclaration(node) || node.heritageClauses !== undefined) return []
  return node.members
    .filter((one) => (ts.isMethodDeclaration(one) || ts.isGetAccessor(one)) && isPublic(one) && !isDocumented(one))
    .map((one) => ({ node: one, name: `${name}.${one.name.getText()}` }))
}

function isPublic(member) {
  const hidden = [ts.SyntaxKind.PrivateKeyword, ts.SyntaxKind.ProtectedKeyword]
  return ts.isIdentifier(member.name) && !(member.modifiers ?? []).some((one) => hidden.includes(one.kind))
}

function lineOf(source, node) {
  return source.getLineAndCharacterOfPosition(node.getStart()).line + 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const broken = check(process.argv[2])
  for (const line of broken) console.error(line)
  console.log(broken.length > 0 ? `${broken.length} faults of doc comments` : 'docs: clean')
  process.exitCode = broken.length > 0 ? 1 : 0
}
