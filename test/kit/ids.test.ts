import test from 'brittle'
import b4a from 'b4a'
import fc from 'fast-check'
import {
  bytesFromText,
  bytesToText,
  flat,
  fromUtf8,
  isKeyText,
  keyFromText,
  keyToText,
  shortId,
  utf8
} from '../../src/kit/ids.js'
import { holds } from '../support/holds.js'

const key = fc.uint8Array({ minLength: 32, maxLength: 32 })

test('every key has one text of 52 characters that leads back to it', async (t) => {
  await holds(
    t,
    fc.property(key, (bytes) => {
      const text = keyToText(bytes)
      return text.length === 52 && isKeyText(text) && b4a.equals(keyFromText(text), bytes)
    })
  )
})

test('no other text is taken for a key', async (t) => {
  for (const bad of ['', 'y'.repeat(51), 'y'.repeat(53), 'l'.repeat(52), 'Y'.repeat(52), null, 7])
    t.is(isKeyText(bad), false)
  await holds(
    t,
    fc.property(fc.string(), (text) => {
      if (isKeyText(text)) return true
      try {
        keyFromText(text)
        return false
      } catch {
        return true
      }
    })
  )
})

test('any bytes go through z32 and back', async (t) => {
  await holds(
    t,
    fc.property(fc.uint8Array(), (bytes) => {
      const back = bytesFromText(bytesToText(bytes))
      return back !== null && b4a.equals(back.subarray(0, bytes.byteLength), bytes)
    })
  )
})

test('foreign characters give null, never an exception', async (t) => {
  t.is(bytesFromText('not z32 !'), null)
  await holds(
    t,
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const bytes = bytesFromText(text)
      return bytes === null || bytes instanceof Uint8Array
    })
  )
})

test('text goes through UTF-8 and back, broken bytes become replacement characters', (t) => {
  t.is(fromUtf8(utf8('grün 🜁')), 'grün 🜁')
  t.is(fromUtf8(new Uint8Array([0x61, 0xff])), 'a\ufffd')
})

test('the short form keeps both ends', (t) => {
  t.is(shortId('k7f2aaaaaaaaaaaaaaaa9d3a'), 'k7f2...9d3a')
  t.is(shortId('laptop'), 'laptop')
})

test('a flat text is the same text', async (t) => {
  await holds(
    t,
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), (parts) => flat(parts.join('@')) === parts.join('@'))
  )
})
