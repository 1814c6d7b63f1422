public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// The three states that a conflict is about.
public struct Conflict: Sendable, Hashable {
  /// The key.
  public var key: Key
  /// The content that both changes were made upon; nil when the key was absent or nobody knows any
  /// more.
  public var base: SyncContent?
  /// The content that this store holds; nil when it has deleted the key.
  public var local: SyncContent?
  /// The content that the feed holds; nil when the key was deleted there.
  public var remote: SyncContent?
  /// When the local change was committed, by this store's clock; where that is ahead of the peer's
  /// by more than a minute, by the peer's. Below the millisecond it is a count that tells changes
  /// of the same millisecond apart, in their order.
  public var localTime: Timestamp
  /// When the remote change was committed, by its writer's clock, likewise: where that was ahead by
  /// more than a minute, when the peer took it. Nil when the peer does not say, as a back end of
  /// one's own that gives no time: then nobody knows which is later.
  public var remoteTime: Timestamp?
  /// The peer's policy for the key, as it was told last; ``ConflictPolicy/detect`` where there is
  /// none.
  public var policy: ConflictPolicy

  /// A conflict.
  public init(
    key: some BytesConvertible, base: SyncContent?, local: SyncContent?, remote: SyncContent?,
    localTime: Timestamp = Timestamp(seconds: 0), remoteTime: Timestamp? = nil,
    policy: ConflictPolicy = .detect
  ) {
    self.policy = policy
    self.key = Key(key)
    self.base = base
    self.local = local
    self.remote = remote
    self.localTime = localTime
    self.remoteTime = remoteTime
  }
}

/// The outcome for a key on which both sides have written.
public enum Resolution: Sendable, Hashable {
  /// The local state, which is sent on top of the remote one.
  case local
  /// The remote state; the local change stays in the history.
  case remote
  /// A state made of both, which is sent.
  case merged(SyncContent)
  /// The remote state, and the local one under another key.
  case both(localKey: Key)
  /// The user decides; until then both can be read.
  case ask
}

/// Decides conflicts. It must be a pure function of what it is given: it may run again.
public struct ConflictResolver: Sendable {
  /// The winner when one side edited and the other deleted.
  public enum DeleteEdit: String, Sendable, Hashable, CaseIterable {
    /// The edit stays.
    case editSurvives
    /// The delete stays.
    case deleteWins
    /// The resolver decides as it does of edits.
    case resolve
  }

  /// The winner when one side edited and the other deleted.
  public var deleteEdit: DeleteEdit
  private let body: @Sendable (Conflict) -> Decision

  /// A resolution, and how a merge of fields has come to it.
  struct Decision: Sendable, Hashable {
    var resolution: Resolution
    /// How many fields both sides had changed, each in its way.
    var clashes = 0
    /// Whether two values could not be merged by their fields.
    var hasFallenBack = false
  }

  /// A resolver of the program's own.
  /// - Parameters:
  ///   - deleteEdit: who wins when one side edited and the other deleted.
  ///   - body: decides; a pure function.
  public init(
    deleteEdit: DeleteEdit = .editSurvives, _ body: @escaping @Sendable (Conflict) -> Resolution
  ) {
    self.init(deleteEdit, deciding: { Decision(resolution: body($0)) })
  }

  private init(
    _ deleteEdit: DeleteEdit, deciding body: @escaping @Sendable (Conflict) -> Decision
  ) {
    self.deleteEdit = deleteEdit
    self.body = body
  }

  /// The default, as the peer's policy for the key has it: with ``ConflictPolicy/detect``, or
  /// without any, as ``localWins``; with ``ConflictPolicy/lastWriterWins`` the later commit stays,
  /// deletes as well, and of two at the same time the feed's; the user decides where the peer does
  /// not say when its content was committed.
  public static let byPolicy = ConflictResolver(
    .resolve,
    deciding: { conflict in
      switch conflict.policy {
      case .detect: localWins.decide(conflict)
      case .lastWriterWins:
        if let remoteTime = conflict.remoteTime {
          Decision(resolution: conflict.localTime > remoteTime ? .local : .remote)
        } else {
          Decision(resolution: conflict.remote == nil ? .local : .ask)
        }
      }
    })
  /// Local changes that were not sent yet stay.
  public static let localWins = ConflictResolver { _ in .local }
  /// The feed's content replaces local changes.
  public static let remoteWins = ConflictResolver(deleteEdit: .resolve) { _ in .remote }
  /// The user decides.
  public static let ask = ConflictResolver(deleteEdit: .resolve) { _ in .ask }

  /// Both stay, the local state under the key with a suffix.
  /// - Parameter suffix: what the key gets; the remote state keeps the key.
  public static func keepBoth(suffix: String = " (local)") -> ConflictResolver {
    ConflictResolver { conflict in
      let key = conflict.key.bytes + suffix.utf8
      return key.count <= Limits.keyBytes ? .both(localKey: Key(key)) : .ask
    }
  }

  /// Values that are JSON objects are merged field by field: what one side changed is taken from
  /// it. Values are compared by what they say, so that names in another order, other escapes and
  /// `1.0` for `1` are no change.
  ///
  /// ``SyncReport`` counts what was merged, which fields clashed and what fell back.
  /// - Parameters:
  ///   - clash: decides on each field that both sides changed, arrays and scalars among them;
  ///     without a base, on fields that differ.
  ///   - fallback: decides on values that are no JSON objects, or that have a name twice in one
  ///     object, more than 64 levels or more than 262,144 values.
  public static func mergeFields(
    clash: FieldClashRule = .asFallback, fallback: ConflictResolver = .localWins
  ) -> ConflictResolver {
    ConflictResolver(fallback.deleteEdit) { conflict in
      guard conflict.local != nil, conflict.remote != nil else { return fallback.decide(conflict) }
      let merge = FieldMerge(conflict, clash, fallback: fallback)
      if let merged = merge.merged {
        return Decision(resolution: .merged(merged), clashes: merge.clashes)
      }
      if merge.asksUser { return Decision(resolution: .ask, clashes: merge.clashes) }
      var decision = fallback.decide(conflict)
      decision.clashes += merge.clashes
      decision.hasFallenBack = true
      return decision
    }
  }

  /// The resolution for a key.
  public func resolve(_ conflict: Conflict) -> Resolution { decide(conflict).resolution }

  func decide(_ conflict: Conflict) -> Decision {
    switch (conflict.local == nil, conflict.remote == nil, deleteEdit) {
    case (true, true, _): return Decision(resolution: .remote)
    case (false, true, .editSurvives), (true, false, .deleteWins):
      return Decision(resolution: .local)
    case (true, false, .editSurvives), (false, true, .deleteWins):
      return Decision(resolution: .remote)
    default: break
    }
    var decision = body(conflict)
    // A side that has deleted the key leaves nothing to keep beside the other.
    if case .both = decision.resolution, conflict.local == nil { decision.resolution = .remote }
    return decision
  }
}

/// Merges values that are JSON objects, field by field as ``JSONMerge`` has it.
struct FieldMerge {
  /// The merged content; nil when the fallback has to decide on the whole value.
  private(set) var merged: SyncContent?
  /// How many fields were changed on both sides, each in its way.
  private(set) var clashes = 0
  /// Whether the rule has left a field to the user.
  private(set) var asksUser = false

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
    case .ask:
      asksUser = true
      return .undecided
    }
  }
}

extension SyncContent {
  /// Whether a store takes it.
  var fitsEntry: Bool {
    value.count <= Limits.valueBytes && labels.count <= Limits.labelsPerEntry
  }
}

/// A field that both sides have changed, each in its way, or hold differently without a base.
public struct FieldClash: Sendable, Hashable {
  /// The outcome for the field.
  public enum Choice: Sendable, Hashable {
    /// The value of this store.
    case local
    /// The value of the feed.
    case remote
    /// A JSON text made of both. One that is no JSON counts as ``fallback``.
    case value([UInt8])
    /// The fallback decides on the whole value.
    case fallback
    /// The user decides on the whole value.
    case ask
  }

  /// The names from the outermost object to the field.
  public var path: [String]
  /// The field's JSON text in what both changes were made upon; nil when it was not there, or
  /// nobody knows any more.
  public var base: [UInt8]?
  /// Its JSON text in this store; nil when it was taken away.
  public var local: [UInt8]?
  /// Its JSON text in the feed; nil when it was taken away.
  public var remote: [UInt8]?
  /// When the local change was committed, as in ``Conflict/localTime``.
  public var localTime: Timestamp
  /// When the remote change was committed, as in ``Conflict/remoteTime``.
  public var remoteTime: Timestamp?

  /// A clash.
  public init(
    path: [String], base: [UInt8]?, local: [UInt8]?, remote: [UInt8]?,
    localTime: Timestamp = Timestamp(seconds: 0), remoteTime: Timestamp? = nil
  ) {
    self.path = path
    self.base = base
    self.local = local
    self.remote = remote
    self.localTime = localTime
    self.remoteTime = remoteTime
  }
}

/// Decides fields that both sides have changed. It must be a pure function, as a resolver is.
public struct FieldClashRule: Sendable {
  /// Nil to do as the fallback says of the whole value.
  private let body: (@Sendable (FieldClash) -> FieldClash.Choice)?

  /// A rule of the program's own.
  /// - Parameter body: decides, by the path for example; a pure function.
  public init(_ body: @escaping @Sendable (FieldClash) -> FieldClash.Choice) {
    self.body = body
  }

  private init() { body = nil }

  /// Each such field is taken from the side that the fallback would let win with the whole value.
  /// Where the fallback asks, keeps both or merges, it decides on the whole value.
  public static let asFallback = FieldClashRule()
  /// Such fields keep what this store holds.
  public static let local = FieldClashRule { _ in .local }
  /// Such fields get what the feed holds.
  public static let remote = FieldClashRule { _ in .remote }
  /// Such fields are taken from the change that was committed later, by its writer's clock. Where
  /// the peer does not say when that was, the user decides.
  public static let latest = FieldClashRule { clash in
    clash.remoteTime.map { clash.localTime >= $0 ? .local : .remote } ?? .ask
  }

  func choice(_ clash: FieldClash, like resolution: @autoclosure () -> Resolution)
    -> FieldClash.Choice
  {
    if let body { return body(clash) }
    return switch resolution() {
    case .local: .local
    case .remote: .remote
    case .merged, .both, .ask: .fallback
    }
  }
}
