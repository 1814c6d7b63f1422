import CTkrzw
import Foundation

/// Tkrzw's hash database by its C interface, a file that is mapped into memory.
final class TkrzwEngine: BenchEngine, @unchecked Sendable {
  private let options: EngineOptions
  private let database: UnsafeMutablePointer<TkrzwDBM>
  /// Label to keys, one after the other.
  private let labels: UnsafeMutablePointer<TkrzwDBM>?
  private var pairs: [TkrzwKeyValuePair] = []
  private var keys: [TkrzwStr] = []

  init(_ options: EngineOptions) throws {
    guard options.level != .buffered else {
      throw BenchError("Tkrzw answers when memory that it shares with the kernel is written")
    }
    self.options = options
    try FileManager.default.createDirectory(
      atPath: options.path, withIntermediateDirectories: true)
    database = try Self.open(options.path + "/records.tkh", buckets: options.n * 2)
    labels = try options.labels.map {
      try Self.open(options.path + "/labels.tkh", buckets: $0.count * 2)
    }
  }

  private static func open(_ path: String, buckets: Int) throws -> UnsafeMutablePointer<TkrzwDBM> {
    guard let opened = tkrzw_dbm_open(path, true, parameters(buckets: buckets)) else {
      throw failure()
    }
    return opened
  }

  private static func parameters(buckets: Int) -> String {
    "dbm=HashDBM,num_buckets=\(buckets),update_mode=UPDATE_IN_PLACE"
  }

  fileprivate static func failure() -> BenchError {
    BenchError("Tkrzw: \(String(cString: tkrzw_get_last_status_message()))")
  }

  var settings: [String] {
    [
      "Tkrzw HashDBM", Self.parameters(buckets: options.n * 2), "MemoryMapParallelFile",
      options.level == .durable ? "synchronize(hard) after every put" : "no sync",
      "process for reads", "labels as lists of keys, appended to",
    ]
  }

  func load(_ records: Records, _ range: Range<Int>) throws {
    pairs.removeAll(keepingCapacity: true)
    for place in range { pairs.append(pair(records.key(place), records.value(place))) }
    guard tkrzw_dbm_set_multi(database, pairs, Int32(pairs.count), true) else {
      throw Self.failure()
    }
    guard let labels, let names = options.labels else { return }
    for place in range {
      let key = records.key(place)
      try names.texts[names.number(records.indices[place])].withUnsafeBytes { label in
        guard
          tkrzw_dbm_append(
            labels, label.characters, Int32(label.count), key.characters, Int32(key.count), "", 0)
        else { throw Self.failure() }
      }
    }
  }

  private func pair(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) -> TkrzwKeyValuePair {
    TkrzwKeyValuePair(
      key_ptr: key.characters, key_size: Int32(key.count), value_ptr: value.characters,
      value_size: Int32(value.count))
  }

  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ index: UInt32) throws {
    guard
      tkrzw_dbm_set(
        database, key.characters, Int32(key.count), value.characters, Int32(value.count), true)
    else { throw Self.failure() }
    if options.level == .durable { try flush() }
  }

  /// Without the labels, whose lists it would have to search.
  func delete(_ records: Records, _ range: Range<Int>) throws {
    keys.removeAll(keepingCapacity: true)
    for place in range {
      let key = records.key(place)
      keys.append(TkrzwStr(ptr: key.characters, size: Int32(key.count)))
    }
    guard tkrzw_dbm_remove_multi(database, keys, Int32(keys.count)) else { throw Self.failure() }
  }

  func flush() throws {
    guard tkrzw_dbm_synchronize(database, true, nil, nil, "") else { throw Self.failure() }
  }

  func reader() throws -> any BenchReader { TkrzwReader(database, labels, options.labels) }

  func compact(dense: Bool) throws {
    guard tkrzw_dbm_rebuild(database, "") else { throw Self.failure() }
    if let labels, !tkrzw_dbm_rebuild(labels, "") { throw Self.failure() }
  }

  func close() throws {
    guard tkrzw_dbm_close(database), labels.map(tkrzw_dbm_close) ?? true else {
      throw Self.failure()
    }
  }
}

private final class TkrzwReader: BenchReader {
  private let database: UnsafeMutablePointer<TkrzwDBM>
  private let lists: UnsafeMutablePointer<TkrzwDBM>?
  private let labels: Labels?

  init(
    _ database: UnsafeMutablePointer<TkrzwDBM>, _ lists: UnsafeMutablePointer<TkrzwDBM>?,
    _ labels: Labels?
  ) {
    self.database = database
    self.lists = lists
    self.labels = labels
  }

  func close() {}

  func get(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws {
    let found = withUnsafeMutablePointer(to: &check) { check in
      tkrzw_dbm_process(
        database, key.characters, Int32(key.count),
        { check, key, _, value, count, _ in
          if let key, let value {
            check?.assumingMemoryBound(to: Check.self).pointee.see(key, value, Int(count))
          }
          return TKRZW_REC_PROC_NOOP
        }, check, false)
    }
    guard found else { throw TkrzwEngine.failure() }
  }

  func scan(from key: UnsafeRawBufferPointer, count: Int, _ check: inout Check) throws {
    // In the order of its own, which serves whoever wants to see everything.
    guard let walk = tkrzw_dbm_make_iterator(database) else { throw TkrzwEngine.failure() }
    defer { tkrzw_dbm_iter_free(walk) }
    var more = tkrzw_dbm_iter_first(walk)
    var left = count
    while more, left > 0 {
      let found = withUnsafeMutablePointer(to: &check) { check in
        tkrzw_dbm_iter_process(
          walk,
          { check, key, _, value, count, _ in
            if let key, let value {
              check?.assumingMemoryBound(to: Check.self).pointee.see(key, value, Int(count))
            }
            return TKRZW_REC_PROC_NOOP
          }, check, false)
      }
      guard found else { return }
      left -= 1
      more = tkrzw_dbm_iter_next(walk)
    }
  }

  private func forEachKey(
    _ number: Int, _ body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    guard let lists, let labels else { return }
    var bytes: Int32 = 0
    let list = labels.texts[number].withUnsafeBytes { label in
      tkrzw_dbm_get(lists, label.characters, Int32(label.count), &bytes)
    }
    defer { free(list) }
    let keys = UnsafeRawBufferPointer(start: list, count: list == nil ? 0 : Int(bytes))
    for start in stride(from: 0, to: keys.count, by: KeyText.byteCount) {
      try body(UnsafeRawBufferPointer(rebasing: keys[start..<start + KeyText.byteCount]))
    }
  }

  func documents(label: Int, _ check: inout Check) throws {
    try forEachKey(label) { key in try get(key, &check) }
  }

  func keys(label: Int, _ check: inout Check) throws {
    try forEachKey(label) { key in
      if let start = key.baseAddress { check.see(start, key.count) }
    }
  }
}
