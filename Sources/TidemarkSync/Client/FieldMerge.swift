internal import Tidemark
internal import TidemarkEngine

/// Merges values that are JSON objects, field by field.
///
/// A field that only one side has changed since the base is taken from it, objects within
/// objects likewise. Arrays and scalars are compared and taken whole, by their text. The result
/// has the local fields in their order, then those that only the remote has.
struct FieldMerge {
  /// The merged content; nil when a field was changed on both sides.
  let merged: SyncContent?

  /// - Returns: nil unless local and remote are JSON objects whose names need no decoding.
  init?(_ conflict: Conflict) {
    guard let local = conflict.local, let remote = conflict.remote,
      let mine = FieldTexts(local.value), let theirs = FieldTexts(remote.value)
    else { return nil }
    let base = conflict.base.flatMap { FieldTexts($0.value) }
    guard let value = Self.merge(mine, theirs, base) else {
      merged = nil
      return
    }
    var content = local
    content.value = value
    content.labels = Self.labels(local.labels, remote.labels, conflict.base?.labels ?? [])
    // A hash of either side does not fit what was made of both.
    if value != local.value { content.hash = value == remote.value ? remote.hash : nil }
    merged = content
  }

  /// Labels that either side added, less those that either took away.
  private static func labels(_ local: [Label], _ remote: [Label], _ base: [Label]) -> [Label] {
    let kept = Set(local).intersection(remote)
    let added = Set(local).union(remote).subtracting(base)
    return kept.union(added).sorted()
  }

  /// - Returns: nil when both sides changed a field, each in its way.
  private static func merge(
    _ local: FieldTexts, _ remote: FieldTexts, _ base: FieldTexts?
  ) -> [UInt8]? {
    var result: [(name: [UInt8], value: [UInt8])] = []
    for name in local.names + remote.names.filter({ local.values[$0] == nil }) {
      let mine = local.values[name]
      let theirs = remote.values[name]
      let old = base?.values[name]
      if mine == theirs || base != nil && theirs == old {
        if let mine { result.append((name, mine)) }
      } else if base != nil, mine == old {
        if let theirs { result.append((name, theirs)) }
      } else if base == nil, mine == nil || theirs == nil {
        // Without a base nobody knows that a field was taken away.
        if let value = mine ?? theirs { result.append((name, value)) }
      } else if let mine, let theirs, let inner = FieldTexts(mine), let other = FieldTexts(theirs),
        let value = merge(inner, other, old.flatMap { FieldTexts($0) })
      {
        result.append((name, value))
      } else {
        return nil
      }
    }
    var text: [UInt8] = [UInt8(ascii: "{")]
    for (index, field) in result.enumerated() {
      if index > 0 { text.append(UInt8(ascii: ",")) }
      text += field.name
      text.append(UInt8(ascii: ":"))
      text += field.value
    }
    text.append(UInt8(ascii: "}"))
    return text
  }
}

/// The fields of a JSON object: names with their quotes, values as they stand.
struct FieldTexts {
  private(set) var names: [[UInt8]] = []
  private(set) var values: [[UInt8]: [UInt8]] = [:]

  /// - Returns: nil when the text is no JSON object, has a name twice, or one with an escape.
  init?(_ text: [UInt8]) {
    guard (try? parse(text)) == true else { return nil }
  }

  private mutating func parse(_ text: [UInt8]) throws(JSONError) -> Bool {
    var scanner = JSONScanner(text.rawSpan)
    guard scanner.accept(UInt8(ascii: "{")) else { return false }
    if !scanner.accept(UInt8(ascii: "}")) {
      repeat {
        guard scanner.peek() == UInt8(ascii: "\"") else { return false }
        let start = scanner.offset
        try scanner.skipString()
        let name = Array(text[start..<scanner.offset])
        guard !name.contains(UInt8(ascii: "\\")), scanner.accept(UInt8(ascii: ":")) else {
          return false
        }
        _ = scanner.peek()
        let first = scanner.offset
        try scanner.skipValue(depth: 1)
        guard values.updateValue(Array(text[first..<scanner.offset]), forKey: name) == nil else {
          return false
        }
        names.append(name)
      } while scanner.accept(UInt8(ascii: ","))
      guard scanner.accept(UInt8(ascii: "}")) else { return false }
    }
    try scanner.expectEnd()
    return true
  }
}
