// Makes the functions of a source note their entries, returns and pauses on a recorder (`recorder.mjs`).
import ts from 'typescript'

const { factory } = ts

/** Names of instrumented code: the recorder, and the run of a function. */
const [RECORDER, RUN] = ['$recorder', '$run']

/** A call of the recorder. */
const note = (method, ...args) =>
  factory.createCallExpression(
    factory.createPropertyAccessExpression(factory.createIdentifier(RECORDER), method),
    undefined,
    args
  )
const noteRun = (method, ...args) => note(method, factory.createIdentifier(RUN), ...args)
const noted = (method) => factory.createExpressionStatement(noteRun(method))
const constant = (name, value) =>
  factory.createVariableStatement(
    undefined,
    factory.createVariableDeclarationList(
      [factory.createVariableDeclaration(name, undefined, undefined, value)],
      ts.NodeFlags.Const
    )
  )

/** `{ body }` as `{ const $run = $recorder.enter(file); try { body } finally { $recorder.leave($run) } }`. */
function recorded(body, file) {
  const statements = ts.isBlock(body) ? body.statements : [factory.createReturnStatement(body)]
  const leave = factory.createBlock([noted('leave')])
  return factory.createBlock([
    constant(RUN, note('enter', factory.createNumericLiteral(file))),
    factory.createTryStatement(factory.createBlock(statements), undefined, leave)
  ])
}

function withBody(node, file) {
  const { modifiers, name, parameters, asteriskToken: star, equalsGreaterThanToken: arrow } = node
  const body = recorded(node.body, file)
  // Compiled code has no types and no type parameters.
  const [types, type] = []
  const signature = [types, parameters, type]
  if (ts.isArrowFunction(node)) return factory.updateArrowFunction(node, modifiers, ...signature, arrow, body)
  if (ts.isFunctionExpression(node))
    return factory.updateFunctionExpression(node, modifiers, star, name, ...signature, body)
  if (ts.isFunctionDeclaration(node))
    return factory.updateFunctionDeclaration(node, modifiers, star, name, ...signature, body)
  if (ts.isConstructorDeclaration(node)) return factory.updateConstructorDeclaration(node, modifiers, parameters, body)
  if (ts.isGetAccessorDeclaration(node))
    return factory.updateGetAccessorDeclaration(node, modifiers, name, parameters, type, body)
  if (ts.isSetAccessorDeclaration(node))
    return factory.updateSetAccessorDeclaration(node, modifiers, name, parameters, body)
  return factory.updateMethodDeclaration(node, modifiers, star, name, undefined, ...signature, body)
}

/** A block that begins with `first`. */
const begun = (first, block) => factory.createBlock([first, ...(ts.isBlock(block) ? block.statements : [block])])

/** What a pause becomes: the run leaves the stack for its time. */
function paused(node) {
  if (ts.isAwaitExpression(node))
    return noteRun('resume', factory.createAwaitExpression(noteRun('pause', node.expression)))
  if (ts.isYieldExpression(node)) {
    const value = noteRun('pause', node.expression ?? factory.createVoidZero())
    return noteRun('resume', factory.createYieldExpression(node.asteriskToken, value))
  }
  // An await or a call that throws continues here.
  if (ts.isCatchClause(node))
    return factory.updateCatchClause(node, node.variableDeclaration, begun(noted('resume'), node.block))
  if (ts.isTryStatement(node) && node.finallyBlock !== undefined)
    return factory.updateTryStatement(node, node.tryBlock, node.catchClause, begun(noted('resume'), node.finallyBlock))
  const { awaitModifier, initializer, expression, statement } = node
  const loop = factory.updateForOfStatement(
    node,
    awaitModifier,
    initializer,
    noteRun('each', expression),
    begun(noted('resume'), statement)
  )
  return factory.createBlock([loop, noted('resume')])
}

const isPause = (node) =>
  ts.isAwaitExpression(node) ||
  ts.isYieldExpression(node) ||
  ts.isCatchClause(node) ||
  (ts.isTryStatement(node) && node.finallyBlock !== undefined) ||
  (ts.isForOfStatement(node) && node.awaitModifier !== undefined)

/**
 * The instrumented module of a source in JavaScript. `file` is the number that its functions enter with. Default values
 * of parameters and of fields, and the code of the module itself, note nothing.
 */
export function instrument(source, file) {
  const { ESNext } = ts.ScriptTarget
  return ts.transpileModule(source, {
    compilerOptions: { target: ESNext, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
    transformers: { before: [instrumenter(file)] }
  }).outputText
}

function instrumenter(file) {
  return (context) => (source) => {
    const visit = (isInside) => (node) => {
      const isBody = ts.isFunctionLike(node) && node.body !== undefined
      const inner = ts.visitEachChild(node, visit(isInside || isBody), context)
      if (isBody) return withBody(inner, file)
      return isInside && isPause(inner) ? paused(inner) : inner
    }
    const visited = ts.visitEachChild(source, visit(false), context)
    const recorder = constant(
      RECORDER,
      factory.createPropertyAccessExpression(factory.createIdentifier('globalThis'), RECORDER)
    )
    return factory.updateSourceFile(visited, [recorder, ...visited.statements])
  }
}
