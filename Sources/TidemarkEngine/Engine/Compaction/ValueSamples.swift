/// Samples of the values that a compaction rewrites, spread over all of them: a zstd dictionary is
/// trained on the samples before the first value is written.
///
/// Only the current values of keys are samples. A dictionary holds pieces of what it was trained
/// on, and a value that was deleted or overwritten must not live on in it.
struct ValueSamples {
  private let reader: Reader
  private(set) var values: [UInt8] = []
  /// Where each value stands in `values`.
  private(set) var places: [Range<Int>] = []
  /// About how many bytes all values have, sampled or not.
  private(set) var total = 0
  /// One value in so many is a sample, so that all samples have about `dictionarySampleBytes`.
  private let step: Int
  /// How many values `note` was given since the last sample.
  private var met: Int

  /// - Parameters:
  ///   - reader: tells which values are the newest of their keys.
  ///   - rawBytes: of everything that is rewritten.
  init(_ reader: Reader, rawBytes: Int) {
    self.reader = reader
    step = max(1, rawBytes / Limits.dictionarySampleBytes)
    met = step - 1
  }

  /// Takes a value `step` values behind the last sample, or the next one that its key has; is given
  /// all values that are sorted in memory.
  mutating func note(
    _ value: RawSpan, of sequence: UInt64, key: RawSpan
  ) throws(TidemarkError) {
    total += value.byteCount
    met += 1
    guard met >= step, try isCurrent(sequence, key) else { return }
    met = 0
    add(value)
  }

  /// Whether an entry has its key's value: it is the newest, or a touch that renews it is.
  private func isCurrent(_ sequence: UInt64, _ key: RawSpan) throws(TidemarkError) -> Bool {
    guard let slot = try reader.slot(ofKey: key), !slot.isDeleted else { return false }
    guard slot.size.isTouched else { return slot.sequence == sequence }
    return try reader.entryIfKept(at: slot.sequence)?.head.valueSequence == sequence
  }

  private mutating func add(_ value: RawSpan) {
    // Samples may be longer than values are on average: at most twice the bytes aimed at are kept.
    let room = 2 * Limits.dictionarySampleBytes - values.count
    let length = min(value.byteCount, room)
    guard length > 0 else { return }
    places.append(values.count..<(values.count + length))
    values.append(copying: value.extracting(0..<length))
  }

  /// About how many sorted frames of a segment are read.
  private static let frames = 64

  /// Adds samples of sorted frames, which are read as a whole only later, when they are merged.
  /// - Parameters:
  ///   - records: frames of the segment, none of history (superseded entries): history is written
  ///     without the dictionary.
  ///   - rawBytes: of their entries.
  mutating func look(
    into segment: Segment, _ records: [FrameRecord], rawBytes: Int
  ) throws(TidemarkError) {
    var frames = try FrameReader(segment, windowBytes: 64 << 10)
    total += rawBytes
    let stride = max(1, records.count / Self.frames)
    let entries = records.reduce(0) { $0 + Int($1.entryCount) }
    // One frame in `stride` is read, so that the step is as many times shorter.
    let step = max(1, self.step / stride)
    // The first `entries % step` entries give none, so that fewer than `step` give no sample.
    var next = entries % step
    for (i, record) in records.enumerated() where i % stride == 0 {
      let front = try frames.front(record)
      while next < front.entries.count {
        let head = front.entries[next]
        next += 1
        guard head.hasValue, try isCurrent(head.sequence, front.key(of: head)) else { continue }
        next += step - 1
        var value: [UInt8] = []
        try frames.appendValue(of: head, in: front, to: &value)
        add(value.rawSpan)
      }
      next -= front.entries.count
    }
  }
}
