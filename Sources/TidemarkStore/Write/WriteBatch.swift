public import TidemarkEngine

/// Changes that are committed together: all or nothing, with consecutive sequences.
///
/// ```swift
/// var batch = WriteBatch()
/// try batch.put("account/1", "90")
/// try batch.put("account/2", "110")
/// try await store.write(batch)
/// ```
/// A batch holds up to 512 MiB of keys and values; beyond that adding throws `limitExceeded`.
public struct WriteBatch: Sendable {
  package var operations = OperationBatch()
  let atomicAtPeer: Bool
  /// The highest sequence in ``PutOptions/after`` of any change; 0 for none.
  private(set) var latestAfter: UInt64 = 0
  /// The staged attachments of the batch's puts; while held here, no sweep removes their files.
  private var attachments: [StagedAttachment] = []

  /// The most changes that a batch with `atomicAtPeer` can hold: 4,000.
  public static let mostAtPeer = 4000
  /// The most bytes of keys and values that a batch with `atomicAtPeer` can hold: 256 KiB.
  public static let mostBytesAtPeer = 256 << 10

  /// Creates an empty batch.
  /// - Parameter atomicAtPeer: whether a peer, too, applies all changes or none; then the batch
  ///   holds no more than fits into one message: ``mostAtPeer`` changes with ``mostBytesAtPeer``.
  public init(atomicAtPeer: Bool = false) { self.atomicAtPeer = atomicAtPeer }

  /// The number of changes in the batch.
  public var count: Int { operations.count }

  /// Whether the batch holds no changes.
  public var isEmpty: Bool { operations.isEmpty }

  /// Adds a put to the batch: the commit writes a value for a key.
  /// - Parameters:
  ///   - key: 1 to 65,535 bytes.
  ///   - value: up to 64 MiB.
  ///   - labels: up to 64; a set, so that order and repetition do not count.
  ///   - options: the caller's time, validator hash, validity and class.
  ///   - condition: the state in which the key must be before the batch.
  /// - Throws: `invalidArgument` or `limitExceeded`; the batch stays as it was.
  @inlinable
  public mutating func put(
    _ key: some BytesConvertible, _ value: some BytesConvertible, labels: [EntryLabel] = [],
    options: PutOptions = PutOptions(), if condition: WriteCondition? = nil
  ) throws(TidemarkError) {
    try key.withBytes { (key) throws(TidemarkError) in
      try value.withBytes { (value) throws(TidemarkError) in
        try add(put: key, value, labels, options, condition)
      }
    }
  }

  /// Adds a put with labels that are `String` or `Substring` values.
  @_disfavoredOverload
  public mutating func put(
    _ key: some BytesConvertible, _ value: some BytesConvertible, labels: [some StringProtocol],
    options: PutOptions = PutOptions(), if condition: WriteCondition? = nil
  ) throws(TidemarkError) {
    try put(key, value, labels: labels.map { EntryLabel($0) }, options: options, if: condition)
  }

  /// Adds a put of a value from a span of bytes. The batch copies the bytes.
  @inlinable
  public mutating func put(
    _ key: some BytesConvertible, _ value: RawSpan, labels: [EntryLabel] = [],
    options: PutOptions = PutOptions(), if condition: WriteCondition? = nil
  ) throws(TidemarkError) {
    try key.withBytes { (key) throws(TidemarkError) in
      try add(put: key, value, labels, options, condition)
    }
  }

  /// Adds a put; not generic, so that it is compiled only once.
  @usableFromInline
  mutating func add(
    put key: RawSpan, _ value: RawSpan, _ labels: [EntryLabel], _ options: PutOptions,
    _ condition: WriteCondition?
  ) throws(TidemarkError) {
    try ReservedKeys.refuse(key)
    guard options.isEmpty, condition == nil, !atomicAtPeer else {
      try add(
        .put, key, value, labels: labels, attributes: options.isEmpty ? nil : options.attributes,
        if: condition)
      if let attachment = options.attachment { attachments.append(attachment) }
      return
    }
    guard !labels.isEmpty else { return try operations.add(.put, key: key, value: value) }
    // The labels are added before the put is checked: a put that is refused must not leave them.
    let before = operations.mark
    do throws(TidemarkError) {
      try operations.add(.put, key: key, value: value, labelSet: try addLabels(labels))
    } catch {
      operations.rollBack(to: before)
      throw error
    }
  }

  /// Adds a set of labels, at least one, to the batch's table of sets.
  /// - Returns: the index of the set.
  private mutating func addLabels(_ labels: [EntryLabel]) throws(TidemarkError) -> Int {
    guard labels.count == 1 else { return try operations.addLabelSet(labels.map(\.bytes)) }
    let label = labels[0].bytes
    return try operations.addLabel(label.rawSpan)
  }

  /// Adds a delete of a key to the batch. The commit changes nothing when the key is absent.
  /// - Parameters:
  ///   - key: the key.
  ///   - time: the caller's own time of the delete; views by own time go by it.
  ///   - condition: the state in which the key must be before the batch.
  /// - Throws: `invalidArgument` or `limitExceeded`; the batch stays as it was.
  @inlinable
  public mutating func delete(
    _ key: some BytesConvertible, time: Timestamp? = nil, if condition: WriteCondition? = nil
  ) throws(TidemarkError) {
    try key.withBytes { (key) throws(TidemarkError) in
      try add(delete: key, time: time, if: condition)
    }
  }

  /// Adds a delete; not generic, so that it is compiled only once.
  @usableFromInline
  mutating func add(
    delete key: RawSpan, time: Timestamp?, if condition: WriteCondition?
  ) throws(TidemarkError) {
    try ReservedKeys.refuse(key)
    guard time != nil || condition != nil || atomicAtPeer else {
      return try operations.add(.delete, key: key)
    }
    let attributes = time.map { PutOptions(time: $0).attributes }
    try add(.delete, key, attributes: attributes, if: condition)
  }

  /// Adds a touch, an entry that renews a value's validity and does not repeat the value; nothing
  /// happens if the key is absent.
  /// - Parameters:
  ///   - key: the key.
  ///   - maxAge: for how long the value is valid from now; nil leaves that as it is.
  ///   - hash: a new validator hash; nil leaves the old one.
  ///   - condition: the state in which the key must be before the batch.
  /// - Throws: `invalidArgument` or `limitExceeded`; the batch stays as it was.
  public mutating func touch(
    _ key: some BytesConvertible, maxAge: Duration? = nil, hash: [UInt8]? = nil,
    if condition: WriteCondition? = nil
  ) throws(TidemarkError) {
    let attributes = PutOptions(hash: hash, maxAge: maxAge).attributes
    try key.withBytes { (key) throws(TidemarkError) in
      try ReservedKeys.refuse(key)
      try add(.touch, key, attributes: attributes, if: condition)
    }
  }

  /// Adds a put that repeats an older version for an undo: its value, labels and metadata, but not
  /// what concerns replication, since the put is a new change.
  package mutating func putBack(
    key: [UInt8], _ value: RawSpan, info: EntryInfo, if condition: WriteCondition
  ) throws(TidemarkError) {
    var attributes = EntryAttributes()
    attributes.time = info.attributes.time
    attributes.hash = info.attributes.hash
    attributes.maxAge = info.attributes.maxAge
    attributes.entryClass = info.attributes.entryClass
    attributes.schemaVersion = info.attributes.schemaVersion
    attributes.attachment = info.attributes.attachment
    // The attachment's content may not be in this store any more; the entry names it all the same.
    if attributes.attachment != nil { operations.mayLackAttachments = true }
    try ReservedKeys.refuse(key.rawSpan)
    try add(
      .put, key.rawSpan, value, labels: info.labels.map { EntryLabel($0) }, attributes: attributes,
      if: condition)
  }

  /// Removes all changes from the batch and keeps its memory for the next ones.
  public mutating func removeAll() {
    operations.removeAll()
    attachments = []
    latestAfter = 0
  }

  /// Adds a change with its labels, attributes and condition; if it throws, nothing was added.
  private mutating func add(
    _ kind: EntryKind, _ key: RawSpan, _ value: RawSpan? = nil, labels: [EntryLabel] = [],
    attributes: EntryAttributes?, if condition: WriteCondition?
  ) throws(TidemarkError) {
    var attributes = attributes
    if atomicAtPeer {
      // A placeholder of the same length: each commit sets a number of its own.
      attributes = attributes ?? EntryAttributes()
      attributes?.atomicGroup = OperationBatch.unnumberedGroup
      try checkFitsPeer(key, value)
    }
    let before = operations.mark
    do throws(TidemarkError) {
      let labelSet = labels.isEmpty ? -1 : try addLabels(labels)
      let index = addCondition(condition)
      try operations.add(
        kind, key: key, value: value, labelSet: labelSet, attributes: attributes,
        condition: index)
    } catch {
      operations.rollBack(to: before)
      throw error
    }
    latestAfter = max(latestAfter, attributes?.after.max() ?? 0)
  }

  private func checkFitsPeer(_ key: RawSpan, _ value: RawSpan?) throws(TidemarkError) {
    guard operations.count < Self.mostAtPeer,
      operations.arena.count + key.byteCount + (value?.byteCount ?? 0) <= Self.mostBytesAtPeer
    else {
      throw TidemarkError(
        .limitExceeded,
        "what is to apply together at a peer has at most \(Self.mostAtPeer) changes of "
          + "\(Self.mostBytesAtPeer >> 10) KiB in all")
    }
  }

  /// - Returns: the index of the condition in the batch's table; -1 for none.
  private mutating func addCondition(_ condition: WriteCondition?) -> Int {
    switch condition {
    case nil: -1
    case .absent: operations.addCondition(.absent)
    case .present: operations.addCondition(.present)
    case .hash(let hash): operations.addCondition(.hash(hash))
    case .sequence(let sequence): operations.addCondition(.sequence(sequence))
    }
  }
}
