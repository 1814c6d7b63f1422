internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Merges values that are JSON objects, field by field.
///
/// A field that only one side has changed since the base is taken from it, objects within objects
/// likewise. Other values are compared by what they say and taken whole, with the text that they
/// have. The result has the local fields in their order, then those that only the remote has.
struct FieldMerge {
  /// The merged content; nil when the fallback has to decide on the whole value.
  private(set) var merged: SyncContent?
  /// How many fields were changed on both sides, each in its way.
  private(set) var clashes = 0

  private let conflict: Conflict
  private let rule: FieldClashRule
  private let fallback: ConflictResolver
  /// The fallback's resolution of the whole value, once somebody has asked.
  private lazy var resolution = fallback.resolve(conflict)

  init(_ conflict: Conflict, _ rule: FieldClashRule, fallback: ConflictResolver) {
    self.conflict = conflict
    self.rule = rule
    self.fallback = fallback
    guard let local = conflict.local, let remote = conflict.remote,
      let mine = ParsedJSON(local.value), let inner = mine.object,
      let theirs = ParsedJSON(remote.value), let other = theirs.object
    else { return }
    let base = conflict.base.flatMap { ParsedJSON($0.value)?.object }
    guard let result = merge(inner, other, base, []) else { return }
    let former = conflict.base.map(\.attachment)
    // Two contents cannot be merged: the fallback decides on the whole value.
    guard
      local.attachment == remote.attachment || local.attachment == former
        || remote.attachment == former
    else {
      clashes += 1
      return
    }
    var content = SyncContent()
    // A side's own bytes stay where they say the result. What both sides say has come already.
    content.value =
      result == theirs ? remote.value : result == mine ? local.value : Array(result.text)
    content.labels = Self.labels(local.labels, remote.labels, conflict.base?.labels ?? [])
    content.maxAgeSeconds = Self.changed(
      local.maxAgeSeconds, remote.maxAgeSeconds, conflict.base.map(\.maxAgeSeconds))
    content.attachment = Self.changed(local.attachment, remote.attachment, former)
    // A hash of either side does not fit what was made of both.
    if local.value == remote.value {
      content.hash = Self.changed(local.hash, remote.hash, conflict.base.map(\.hash))
    } else if content.value == local.value {
      content.hash = local.hash
    } else if content.value == remote.value {
      content.hash = remote.hash
    }
    if content.fitsEntry { merged = content }
  }

  /// Labels that either side added, less those that either took away.
  private static func labels(_ local: [EntryLabel], _ remote: [EntryLabel], _ base: [EntryLabel])
    -> [EntryLabel]
  {
    let kept = Set(local).intersection(remote)
    let added = Set(local).union(remote).subtracting(base)
    return kept.union(added).sorted()
  }

  /// The remote side of what the local one has left alone.
  private static func changed<T: Equatable>(_ local: T, _ remote: T, _ base: T?) -> T {
    local == base ? remote : local
  }

  /// - Returns: nil when the fallback has to decide on the whole value.
  private mutating func merge(
    _ local: ParsedJSON.Object, _ remote: ParsedJSON.Object, _ base: ParsedJSON.Object?,
    _ path: [[UInt8]]
  ) -> ParsedJSON? {
    var result = ParsedJSON.Object()
    for name in local.names + remote.names.filter({ local.members[$0] == nil }) {
      let mine = local.members[name]?.value
      let theirs = remote.members[name]?.value
      let old = base?.members[name]?.value
      let value: ParsedJSON?
      if mine == theirs || base != nil && theirs == old {
        value = mine
      } else if base != nil, mine == old {
        value = theirs
      } else if base == nil, mine == nil || theirs == nil {
        // Without a base nobody knows that a field was taken away.
        value = mine ?? theirs
      } else if let inner = mine?.object, let other = theirs?.object {
        guard let both = merge(inner, other, old?.object, path + [name]) else { return nil }
        value = both
      } else {
        switch choice(mine, theirs, old, path + [name]) {
        case .local: value = mine
        case .remote: value = theirs
        case .value(let text):
          guard let made = ParsedJSON(text) else { return nil }
          value = made
        case .fallback: return nil
        }
      }
      guard let value, let member = local.members[name] ?? remote.members[name] else { continue }
      result.names.append(name)
      result.members[name] = ParsedJSON.Object.Member(nameText: member.nameText, value: value)
    }
    return ParsedJSON(result, text: Self.text(of: result)[...])
  }

  private mutating func choice(
    _ local: ParsedJSON?, _ remote: ParsedJSON?, _ base: ParsedJSON?, _ path: [[UInt8]]
  ) -> FieldClash.Choice {
    clashes += 1
    let clash = FieldClash(
      path: path.map { String(decoding: $0, as: UTF8.self) }, base: base.map { Array($0.text) },
      local: local.map { Array($0.text) }, remote: remote.map { Array($0.text) },
      localTime: conflict.localTime, remoteTime: conflict.remoteTime)
    return rule.choice(clash, like: resolution)
  }

  private static func text(of object: ParsedJSON.Object) -> [UInt8] {
    var text: [UInt8] = [UInt8(ascii: "{")]
    for (index, name) in object.names.enumerated() {
      guard let member = object.members[name] else { continue }
      if index > 0 { text.append(UInt8(ascii: ",")) }
      text += member.nameText
      text.append(UInt8(ascii: ":"))
      text += member.value.text
    }
    text.append(UInt8(ascii: "}"))
    return text
  }
}

extension SyncContent {
  /// Whether a store takes it.
  var fitsEntry: Bool {
    value.count <= Limits.valueBytes && labels.count <= Limits.labelsPerEntry
  }
}
