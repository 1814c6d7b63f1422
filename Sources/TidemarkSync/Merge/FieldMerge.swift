internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Merges values that are JSON objects, field by field as ``JSONMerge`` has it.
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
    let result = JSONMerge.merge(inner, other, base) { choice($0, $1, $2, $3) }
    guard let result else { return }
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

  private mutating func choice(
    _ local: ParsedJSON?, _ remote: ParsedJSON?, _ base: ParsedJSON?, _ path: [[UInt8]]
  ) -> JSONMerge.Choice {
    clashes += 1
    let clash = FieldClash(
      path: path.map { String(decoding: $0, as: UTF8.self) }, base: base.map { Array($0.text) },
      local: local.map { Array($0.text) }, remote: remote.map { Array($0.text) },
      localTime: conflict.localTime, remoteTime: conflict.remoteTime)
    switch rule.choice(clash, like: resolution) {
    case .local: return .value(local)
    case .remote: return .value(remote)
    case .value(let text): return ParsedJSON(text).map { .value($0) } ?? .undecided
    case .fallback: return .undecided
    }
  }
}

extension SyncContent {
  /// Whether a store takes it.
  var fitsEntry: Bool {
    value.count <= Limits.valueBytes && labels.count <= Limits.labelsPerEntry
  }
}
