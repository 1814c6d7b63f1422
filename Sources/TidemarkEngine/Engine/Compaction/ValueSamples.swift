/// Samples of the values that a compaction rewrites, spread over all of them: a zstd dictionary is
/// trained on the samples before the first value is written.
///
/// Only the newest values of keys are samples. A dictionary holds pieces of what it was trained on:
/// a value that was deleted must not live on in it.
struct ValueSamples {
  private let reader: Reader
  private(set) var values: [UInt8] = []
  /// Where each value stands in `values`.
  private(set) var places: [Range<Int>] = []
  /// About how many bytes all values have, sampled or not.
  private(set) var total = 0
  /// One value in so many is a sample, so that all samples have about `dictionarySampleBytes`.
  private let step: Int
  /// How many values `note` was given.
  private var met = 0

  /// - Parameters:
  ///   - reader: tells which values are the newest of their keys.
  ///   - rawBytes: of everything that is rewritten.
  init(_ reader: Reader, rawBytes: Int) {
    self.reader = reader
    step = max(1, rawBytes / Limits.dictionarySampleBytes)
  }

  /// Takes every `step`-th value; is given all values that are sorted in memory.
  mutating func note(_ value: RawSpan, of sequence: UInt64, key: RawSpan) {
    total += value.byteCount
    met += 1
    guard (met - 1) % step == 0 else { return }
    add(value, of: sequence, key: key)
  }

  private mutating func add(_ value: RawSpan, of sequence: UInt64, key: RawSpan) {
    // Where that cannot be told, in a store with damage, the value is no sample.
    guard (try? reader.isNewest(sequence, ofKey: key)) == true else { return }
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
        next += step
        guard head.hasValue else { continue }
        var value: [UInt8] = []
        try frames.appendValue(of: head, in: front, to: &value)
        add(value.rawSpan, of: head.sequence, key: front.key(of: head))
      }
      next -= front.entries.count
    }
  }
}
