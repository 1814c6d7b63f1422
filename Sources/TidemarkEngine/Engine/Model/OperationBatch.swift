/// Changes to be committed together, in one flat piece of memory: nothing is allocated per key.
/// Whoever makes the batch owns it; the engine commits a copy, and adds derived operations to that.
package struct OperationBatch: Sendable {
  package struct Operation: Sendable {
    package var kind: EntryKind
    /// Whether a delete writes a tombstone even where the key is absent, as replication needs it.
    package var isForced = false
    /// Whether the put, touch or eviction is of cached data: a copy of what a server has.
    package var isCached = false
    package var keyStart: Int
    package var keyLength: Int
    package var valueStart = 0
    package var valueLength = 0
    /// Index into the sets of `labels`; -1 for none.
    package var labelSet = -1
    package var attributesStart = 0
    package var attributesLength = 0
    package var ownTime: Timestamp?
    /// Index into `conditions`; -1 for none.
    package var condition = -1
  }

  /// What must hold of a key in the state before the batch; else the commit throws `conflict`.
  package enum Condition: Sendable, Hashable {
    case absent
    case present
    /// The key is present, and this is its newest entry.
    case sequence(UInt64)
    /// This is the newest entry of the key, be it a delete; 0 for a key that has no entry.
    case entry(UInt64)
    /// For evictions and touches alone, which do nothing if this is not the key's newest entry.
    case isNewest(UInt64)
    /// The value has this validator hash; ``resolveHashes(_:)`` turns it into `sequence`.
    case hash([UInt8])
  }

  /// Keys, values and attributes.
  package private(set) var arena: [UInt8] = []
  package private(set) var operations: [Operation] = []
  private(set) var labels = BatchLabels()
  package private(set) var conditions: [Condition] = []
  /// Whether a condition is on a hash.
  var asksForHashes: Bool { conditions.contains { if case .hash = $0 { true } else { false } } }
  /// Whether the caller has added cached data: the commit checks that it hides no user's value.
  package private(set) var hasCached = false
  /// Whether any operation is a touch.
  package var hasTouches: Bool { touches > 0 }
  /// The attachments (files beside the log) that changes name; held while the batch is committed.
  package private(set) var attachments: [AttachmentID] = []
  /// Whether these files may be missing here, since a peer has them.
  package var mayLackAttachments = false
  /// Whether a cached value may hide a value or delete of the user's own; else that is a conflict.
  package var mayCoverOwned = false
  /// The index of the first operation that ``IndexMaintenance`` has added (a row of an index, say).
  private(set) var derivedFrom = Int.max
  /// Keys whose index rows are written again, though the batch does not change their values.
  package var rederived: [[UInt8]] = []
  /// Index rows that the caller has computed already, by the index of the operation.
  package var knownRows: [Int: KnownRows] = [:]
  /// Whether the batch may repeat a value of a unique index, as entries of peers may.
  package var mayRepeatUnique = true
  /// `Engine.takeovers` (how often another process has had the store) when the batch was prepared:
  /// the commit throws `cancelled` if it has changed; nil for no check.
  package var takeovers: UInt64?
  private var scratch = ByteWriter()
  private var touches = 0

  package init() {}
  package var isEmpty: Bool { operations.isEmpty && rederived.isEmpty }
  package var count: Int { operations.count }

  /// An upper bound of the bytes in the log, which the writer reserves before it stages.
  package var storedBound: Int {
    Self.storedBound(
      bytes: arena.count, operations: operations.count, touches: touches,
      labelBytes: labels.storedBytes)
  }

  /// The bound for so many bytes and operations: besides the bytes 96 for an entry header, 24 for a
  /// block's checksum, tag and row in its table, 8 times that for a frame, and 4096 in all.
  static func storedBound(
    bytes: Int, operations: Int, touches: Int = 0, labelBytes: Int = 0
  ) -> Int {
    let blocks = bytes / Limits.blockBytes + operations
    // Each frame repeats the label sets that its entries use, so that it is decoded by itself.
    let frames = bytes / Limits.frameHeadsTarget + operations / 1024 + 2
    // A touch (an entry that renews a value's validity) may repeat attributes of earlier touches.
    return bytes + operations * 96 + touches * (Limits.hashBytes + 16) + labelBytes
      * min(frames, operations + 1)
      + (blocks + frames * 8) * 24 + 4096
  }

  @_lifetime(borrow self)
  package func key(of operation: Operation) -> RawSpan {
    arena.rawSpan.extracting(operation.keyStart..<(operation.keyStart + operation.keyLength))
  }

  @_lifetime(borrow self)
  package func value(of operation: Operation) -> RawSpan {
    let start = operation.valueStart
    return arena.rawSpan.extracting(start..<(start + operation.valueLength))
  }

  @_lifetime(borrow self)
  package func attributes(of operation: Operation) -> RawSpan {
    let start = operation.attributesStart
    return arena.rawSpan.extracting(start..<(start + operation.attributesLength))
  }

  /// The bytes that the labels of a put take in the log.
  package func labelLength(of operation: Operation) -> Int {
    operation.labelSet < 0 ? 0 : labels.sets[operation.labelSet].storedBytes
  }

  /// The length of the attachment that a change names; 0 for none.
  package func attachmentLength(of operation: Operation) -> Int {
    guard !attachments.isEmpty, operation.attributesLength > 0,
      let attributes = try? EntryAttributes(decoding: attributes(of: operation))
    else { return 0 }
    return Int(clamping: attributes.attachment?.length ?? 0)
  }

  /// Adds a set of labels, sorted and without repetitions, to the batch's table.
  /// - Returns: the index to pass to `add`; -1 for no labels.
  package mutating func addLabelSet(_ labels: [[UInt8]]) throws(TidemarkError) -> Int {
    guard !labels.isEmpty else { return -1 }
    return self.labels.add(try Self.sorted(labels))
  }

  /// Labels as entries have them, in the order of bytes and without repetition.
  /// - Throws: `invalidArgument` for too many, or for one of a wrong length.
  static func sorted(_ labels: [[UInt8]]) throws(TidemarkError) -> [[UInt8]] {
    var sorted = labels
    if !zip(labels, labels.dropFirst()).allSatisfy({ $0.lexicographicallyPrecedes($1) }) {
      sorted = Set(labels).sorted { $0.lexicographicallyPrecedes($1) }
    }
    guard sorted.count <= Limits.labelsPerEntry else {
      throw TidemarkError(
        .invalidArgument,
        "\(sorted.count) labels on one entry; at most \(Limits.labelsPerEntry) are allowed")
    }
    for label in sorted where label.isEmpty || label.count > Limits.labelBytes {
      throw TidemarkError(
        .invalidArgument,
        "a label of \(label.count) bytes; labels have 1 to \(Limits.labelBytes) bytes")
    }
    return sorted
  }

  /// Adds a set of one label, fast where a batch repeats few labels.
  package mutating func addLabel(_ label: RawSpan) throws(TidemarkError) -> Int {
    guard label.byteCount > 0, label.byteCount <= Limits.labelBytes else {
      return try addLabelSet([[UInt8](copying: label)])
    }
    return labels.add(label)
  }

  package mutating func addCondition(_ condition: Condition) -> Int {
    conditions.append(condition)
    return conditions.count - 1
  }

  /// Turns conditions on validator hashes into conditions on the sequences that carry them now. The
  /// caller holds the writer's lock until the batch is staged, so that these stay the newest.
  /// - Parameter newest: the newest entry of a key and its hash; nil where there is none.
  /// - Throws: `conflict` where a key has another hash, and what `newest` throws.
  mutating func resolveHashes(
    _ newest: (RawSpan) throws(TidemarkError) -> (sequence: UInt64, hash: [UInt8]?)?
  ) throws(TidemarkError) {
    for (index, operation) in operations.enumerated() {
      guard operation.condition >= 0, case .hash(let hash) = conditions[operation.condition]
      else { continue }
      guard let found = try newest(key(of: operation)), found.hash == hash else {
        throw TidemarkError(
          .conflict, "the key does not have this validator hash; read it again and decide",
          operation: index)
      }
      conditions[operation.condition] = .sequence(found.sequence)
    }
  }

  /// Adds a change.
  /// - Parameters:
  ///   - labelSet: from `addLabelSet`.
  ///   - condition: from `addCondition`; -1 for none.
  package mutating func add(
    _ kind: EntryKind, key: RawSpan, value: RawSpan? = nil, labelSet: Int = -1,
    attributes: EntryAttributes? = nil, condition: Int = -1, isForced: Bool = false
  ) throws(TidemarkError) {
    // Both checks come before the batch changes: a change that is refused leaves no trace.
    try attributes?.check()
    try add(kind, key: key, value: value, labelSet: labelSet)
    let last = operations.count - 1
    operations[last].isForced = isForced
    operations[last].condition = condition
    if let attributes, !attributes.isEmpty { add(attributes, toOperation: last) }
  }

  /// Adds an eviction, which does nothing where the key has no cached value, or not the one meant.
  /// - Parameter sequence: the entry that was meant; 0 for whichever is the newest.
  package mutating func addEviction(of key: RawSpan, at sequence: UInt64) throws(TidemarkError) {
    let condition = sequence > 0 ? addCondition(.isNewest(sequence)) : -1
    try add(.evict, key: key, attributes: Self.cached, condition: condition)
  }

  /// Says that the operations added from now on are derived from those so far.
  package mutating func beginDerived() { derivedFrom = operations.count }

  /// Adds a derived entry.
  /// - Parameter value: nil adds the eviction of the entry, which does nothing if there is none.
  package mutating func addDerived(_ key: RawSpan, _ value: RawSpan?) throws(TidemarkError) {
    let hadCached = hasCached
    try add(value == nil ? .evict : .put, key: key, value: value, attributes: Self.cached)
    // Derived entries are stored as cached data, but no user's value can be at their reserved keys.
    hasCached = hadCached
  }

  private static let cached: EntryAttributes = {
    var attributes = EntryAttributes()
    attributes.entryClass = .cache
    return attributes
  }()

  /// Adds a change without attributes and condition, as most changes are.
  package mutating func add(
    _ kind: EntryKind, key: RawSpan, value: RawSpan? = nil, labelSet: Int = -1
  ) throws(TidemarkError) {
    try Self.check(key: key.byteCount, value: value?.byteCount ?? 0, kind: kind)
    guard arena.count + key.byteCount + (value?.byteCount ?? 0) <= Limits.batchBytes,
      operations.count < Limits.batchOperations
    else {
      throw TidemarkError(
        .limitExceeded, "a batch of more than \(Limits.batchBytes >> 20) MiB; split it")
    }
    var operation = Operation(kind: kind, keyStart: arena.count, keyLength: key.byteCount)
    arena.append(copying: key)
    if let value {
      operation.valueStart = arena.count
      operation.valueLength = value.byteCount
      arena.append(copying: value)
    }
    operation.labelSet = labelSet
    operations.append(operation)
    if kind == .touch { touches += 1 }
  }

  private mutating func add(_ attributes: EntryAttributes, toOperation index: Int) {
    if attributes.entryClass == .cache, operations[index].kind != .delete {
      operations[index].isCached = true
      hasCached = true
    }
    if let attachment = attributes.attachment { attachments.append(attachment) }
    scratch.bytes.removeAll(keepingCapacity: true)
    attributes.encode(into: &scratch)
    operations[index].ownTime = attributes.time
    operations[index].attributesStart = arena.count
    operations[index].attributesLength = scratch.count
    arena.append(contentsOf: scratch.bytes)
  }

  /// The number of an atomic group (changes that peers apply together) until the commit draws one.
  /// All numbers have bit 21 set and 28 bits at most, so that each takes four bytes as a varint.
  package static let unnumberedGroup: UInt64 = 1 << 21

  /// Gives all changes that were added as an atomic group the same number.
  package mutating func numberGroup(_ random: UInt64) {
    let group = Self.unnumberedGroup | random & (1 << 28 - 1)
    for operation in operations where operation.attributesLength > 0 {
      // This batch encoded them, so they decode, and are as long with any group's number.
      guard var attributes = try? EntryAttributes(decoding: self.attributes(of: operation)),
        attributes.atomicGroup != 0
      else { continue }
      attributes.atomicGroup = group
      scratch.bytes.removeAll(keepingCapacity: true)
      attributes.encode(into: &scratch)
      for (index, byte) in scratch.bytes.enumerated() {
        arena[operation.attributesStart + index] = byte
      }
    }
  }

  /// Checks the lengths of key and value; only records (entries of the engine's own) have no key.
  package static func check(key: Int, value: Int, kind: EntryKind) throws(TidemarkError) {
    guard key > 0 || kind == .record else {
      throw TidemarkError(.invalidArgument, "the key is empty; keys have 1 to 65535 bytes")
    }
    guard key <= Limits.keyBytes else {
      throw TidemarkError(
        .invalidArgument, "the key has \(key) bytes; keys have 1 to \(Limits.keyBytes) bytes")
    }
    let most = kind == .record ? Limits.recordBytes : Limits.valueBytes
    guard value <= most else {
      throw TidemarkError(
        .invalidArgument, "the value has \(value) bytes; values have at most \(most) bytes")
    }
  }

  /// The lengths of a batch's arrays at one moment, for ``rollBack(to:)``.
  package struct Mark: Sendable, Hashable {
    fileprivate var arena: Int
    fileprivate var operations: Int
    fileprivate var labelSets: Int
    fileprivate var conditions: Int
    fileprivate var attachments: Int
  }

  package var mark: Mark {
    Mark(
      arena: arena.count, operations: operations.count, labelSets: labels.sets.count,
      conditions: conditions.count, attachments: attachments.count)
  }

  /// Removes what was added since `mark`; no derived operations may have been added since.
  /// `hasCached` and `touches` stay: at worst they cost a needless check and some reserved space.
  package mutating func rollBack(to mark: Mark) {
    arena.removeLast(arena.count - mark.arena)
    operations.removeLast(operations.count - mark.operations)
    if !knownRows.isEmpty { knownRows = knownRows.filter { $0.key < mark.operations } }
    labels.removeSets(from: mark.labelSets)
    conditions.removeLast(conditions.count - mark.conditions)
    attachments.removeLast(attachments.count - mark.attachments)
  }

  /// Empties the batch and keeps its memory.
  package mutating func removeAll() {
    arena.removeAll(keepingCapacity: true)
    operations.removeAll(keepingCapacity: true)
    labels.removeSets(from: 0)
    conditions.removeAll(keepingCapacity: true)
    rederived.removeAll()
    takeovers = nil
    knownRows = [:]
    derivedFrom = .max
    attachments.removeAll()
    hasCached = false
    touches = 0
  }
}

extension EntryAttributes {
  /// Checks the lengths and ranges of the attributes that the caller gave.
  func check() throws(TidemarkError) {
    guard (hash?.count ?? 0) <= Limits.hashBytes else {
      throw TidemarkError(.invalidArgument, "the hash is longer than \(Limits.hashBytes) bytes")
    }
    guard (time?.nanoseconds ?? 0) < 1_000_000_000 else {
      throw TidemarkError(
        .invalidArgument, "the entry's own time has more than a second of nanoseconds")
    }
    guard (alias?.count ?? 0) <= Limits.aliasBytes,
      (generation?.count ?? 0) <= Limits.generationBytes, after.count <= Limits.afterEdges,
      origin.map({ $0.replica.count == 16 }) ?? true, (attachment?.hash.count ?? 32) == 32
    else { throw TidemarkError(.invalidArgument, "an attribute of the entry is out of bounds") }
  }
}
