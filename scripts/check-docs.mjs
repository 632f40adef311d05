#!/usr/bin/env node
// Checks that every exported symbol of src/ has a doc comment, and so has every public method of an exported class
// that stands for itself (one that implements a port is documented there).
// Prints one line for each symbol without one. Exit code: 0 clean, 1 broken.
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/**
 * Checks every source file but ambient declarations.
 * @param {string} root directory of the sources
 * @returns {string[]} one line for each symbol without a doc comment
 */
export function check(root = 'src') {
  const names = fs.readdirSync(root, { recursive: true }).filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.d.ts'))
  return names.sort().flatMap((name) => {
    const file = path.posix.join(root, name)
    const source = ts.createSourceFile(file, fs.readFileSync(file, 'utf8'), ts.ScriptTarget.ES2023, true)
    return undocumented(source).map(({ node, name: symbol }) => `${file}:${lineOf(source, node)} ${symbol} has no doc comment`)
  })
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
  console.log(broken.length > 0 ? `${broken.length} symbols without a doc comment` : 'docs: clean')
  process.exitCode = broken.length > 0 ? 1 : 0
}
