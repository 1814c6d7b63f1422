/// Stores nothing and answers every read with a value made on the spot: the cost of the loops, of
/// the call through the protocol, of the key's text and of the check.
final class EmptyEngine: BenchEngine {
  private let options: EngineOptions

  init(_ options: EngineOptions) throws { self.options = options }

  var settings: [String] { ["stores nothing; its figures are the cost of the loops"] }

  func load(_ records: Records, _ range: Range<Int>) throws {}
  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ index: UInt32) throws {
  }
  func delete(_ records: Records, _ range: Range<Int>) throws {}
  func flush() throws {}
  func reader() throws -> any BenchReader { EmptyReader(options) }
  func compact(dense: Bool) throws {}
  func close() throws {}
}

private final class EmptyReader: BenchReader {
  private let options: EngineOptions
  private let value: UnsafeMutableRawPointer
  private let key = KeyBuffer()

  init(_ options: EngineOptions) {
    self.options = options
    value = .allocate(byteCount: options.values.mean * 2 + 64, alignment: 16)
    _ = Values(mean: options.values.mean).write(0, revision: 0, to: value)
  }

  func close() { value.deallocate() }

  func get(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws {
    guard let start = key.baseAddress else { return }
    let digits = (start + KeyText.tail).loadUnaligned(as: UInt64.self)
    (value + Values.idTail).storeBytes(of: digits, as: UInt64.self)
    check.see(start, value, options.values.length(KeyText.number(ofDigits: digits)))
  }

  func scan(from key: UnsafeRawBufferPointer, count: Int, _ check: inout Check) throws {
    guard let start = key.baseAddress else { return }
    let first = KeyText.number(ofDigits: (start + KeyText.tail).loadUnaligned(as: UInt64.self))
    for index in first..<min(options.n, first + min(count, options.n)) {
      try get(self.key.key(index), &check)
    }
  }

  func documents(label: Int, _ check: inout Check) throws {
    guard let labels = options.labels else { return }
    for index in 0..<options.n where labels.number(UInt32(index)) == label {
      try get(key.key(index), &check)
    }
  }

  func keys(label: Int, _ check: inout Check) throws {
    guard let labels = options.labels else { return }
    for index in 0..<options.n where labels.number(UInt32(index)) == label {
      let key = self.key.key(index)
      if let start = key.baseAddress { check.see(start, key.count) }
    }
  }
}
