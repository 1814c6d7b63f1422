internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// The lines of one chunk, decoded and laid out for a commit.
struct PreparedBatch: Sendable {
  var lines = DecodedLines()
  var operations = OperationBatch()
  /// Lines that cannot be taken and are left out.
  var bad: [LineError] = []
  /// Whether there are touches among them, which need a look at the store.
  var hasTouches = false
  /// Bytes of the input file up to the end of the chunk.
  var bytesRead = 0
  /// The cost of this batch in the pipeline's budget.
  var cost = 0

  /// Decodes a chunk.
  /// - Throws: the first bad line, unless bad lines are skipped.
  mutating func decode(_ chunk: LineChunk, skipsBad: Bool) throws {
    lines.removeAll()
    bad.removeAll()
    if skipsBad {
      bad = lines.appendSkippingBad(chunk)
    } else {
      try lines.append(chunk)
    }
    try layOut()
  }

  /// Makes the operations from the lines.
  /// - Parameter excluded: numbers of lines to leave out.
  mutating func layOut(excluding excluded: Set<Int> = []) throws(TidemarkError) {
    operations.removeAll()
    hasTouches = false
    // Sets of labels are many lines' own; each goes into the batch once.
    var sets = [Int](repeating: Self.unknownSet, count: lines.labelSets.count)
    sets[0] = -1
    for line in lines.lines where !excluded.contains(line.number) {
      if sets[line.labelSet] == Self.unknownSet {
        sets[line.labelSet] = try operations.addLabelSet(
          lines.labelSets.labels(inSet: line.labelSet))
      }
      hasTouches = hasTouches || line.operation == .touch
      try Self.add(line, of: lines, labelSet: sets[line.labelSet], to: &operations)
    }
  }

  private static let unknownSet = -2

  private static func add(
    _ line: DecodedLine, of lines: borrowing DecodedLines, labelSet: Int,
    to operations: inout OperationBatch
  ) throws(TidemarkError) {
    var attributes: EntryAttributes?
    if line.time != nil || !line.hash.isEmpty || line.maxAge != nil
      || line.entryClass != .owned || line.attachment != nil
    {
      var given = EntryAttributes()
      given.time = line.time
      given.maxAge = line.maxAge
      given.attachment = line.attachment
      if !line.hash.isEmpty { given.hash = [UInt8](copying: lines.bytes(line.hash)) }
      if line.entryClass == .cache, line.operation != .delete { given.entryClass = .cache }
      attributes = given
    }
    let key = lines.bytes(line.key)
    switch line.operation {
    case .put:
      try operations.add(
        .put, key: key, value: lines.bytes(line.value), labelSet: labelSet,
        attributes: attributes)
    case .delete:
      // Every line takes one sequence, also the delete of a key that is not there.
      try operations.add(.delete, key: key, attributes: attributes, isForced: true)
    case .touch: try operations.add(.touch, key: key, attributes: attributes)
    }
  }

  /// Touches of keys that are absent at that point: they would make no entry.
  func ineffectiveTouches(in store: Store) throws(TidemarkError) -> [LineError] {
    guard hasTouches else { return [] }
    var isPresent: [[UInt8]: Bool] = [:]
    var errors: [LineError] = []
    for line in lines.lines {
      let key = [UInt8](copying: lines.bytes(line.key))
      switch line.operation {
      case .put: isPresent[key] = true
      case .delete: isPresent[key] = false
      case .touch:
        let known = isPresent[key]
        let present =
          if let known { known } else { try store.contains(key) }
        isPresent[key] = present
        if !present {
          errors.append(
            LineError(
              .content, line: line.number, column: 0,
              "a touch of a key that is not there; put it first"))
        }
      }
    }
    return errors
  }
}
