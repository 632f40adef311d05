/** Start of the URIs of resources of imported servers. */
export const RESOURCES = 'a2a://resources/'
/** Characters of a URI of a resource that a client names. */
const MAX_URI = 16_384
/** Before a URI in percent encoding. No URI begins so. */
const ENCODED = '~'

/** A URI of RFC 3986, as far as its letters go. */
const PLAIN = /^[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]*$/
/** Segments that clients may resolve away. */
const DOTS = /(?:^|\/)(?:\.|%2e){1,2}(?:[/?#]|$)/i
/** An expression of a URI template (RFC 6570). */
const EXPRESSION = /\{[+#./;?&|!@=,]?[A-Za-z0-9_.,*:%-]{1,256}\}/g

/** A resource of an agent. */
export interface ResourceOrigin {
  /** `id@node` of the agent. */
  readonly address: string
  /** As its server calls it. */
  readonly uri: string
}

/**
 * The URI of an agent's resource for clients: `a2a://resources/<id@node>/<uri>`. The URI of the server stays as it is,
 * or is percent-encoded behind `~` where it has letters that no URI has, or segments that clients may change.
 * `uri` is well-formed Unicode.
 */
export function publishedUri({ address, uri }: ResourceOrigin): string {
  const isPlain = PLAIN.test(uri) && !DOTS.test(uri)
  return `${RESOURCES}${encodeURIComponent(address)}/${isPlain ? uri : `${ENCODED}${encodeURIComponent(uri)}`}`
}

/** The same for a URI template; null for one that is no template of URIs. */
export function publishedTemplate({ address, uri }: ResourceOrigin): string | null {
  const literal = uri.replaceAll(EXPRESSION, '')
  if (!PLAIN.test(literal) || DOTS.test(literal) || uri.startsWith('{')) return null
  return `${RESOURCES}${encodeURIComponent(address)}/${uri}`
}

/** The origin of a published URI or template; null for any other text. */
export function originOf(published: string): ResourceOrigin | null {
  if (published.length > MAX_URI || !published.startsWith(RESOURCES)) return null
  const end = published.indexOf('/', RESOURCES.length)
  if (end < 0) return null
  const rest = published.slice(end + 1)
  try {
    const address = decodeURIComponent(published.slice(RESOURCES.length, end))
    const uri = rest.startsWith(ENCODED) ? decodeURIComponent(rest.slice(ENCODED.length)) : rest
    return address === '' || uri === '' ? null : { address, uri }
  } catch {
    return null
  }
}

/** Could a URI be made from a template? By the literal text before the first and after the last expression. */
export function mayFit(template: string, uri: string): boolean {
  const [from, to] = [template.indexOf('{'), template.lastIndexOf('}')]
  if (from < 0 || to < from) return template === uri
  const [head, tail] = [template.slice(0, from), template.slice(to + 1)]
  return head !== '' && uri.length >= head.length + tail.length && uri.startsWith(head) && uri.endsWith(tail)
}
