import TidemarkTestKit

@testable import TidemarkEngine

/// A sorted run of the index for tests that ask what look-ups read of its file.
enum SampleRun {
  static let seed: UInt64 = 7

  static func key(_ number: Int) -> [UInt8] { [UInt8]("key/\(1_000_000 + number)".utf8) }

  /// A run that has just been opened, of every other key below `2 * count`. The sequence of a key
  /// is its number and one.
  /// - Parameter pages: pages of the file that cannot be read.
  static func open(count: Int, failing pages: [Int] = []) throws -> SortedRun {
    let index = Index(seed: seed)
    for number in stride(from: 0, to: 2 * count, by: 2) {
      let key = key(number)
      try index.upsert(
        key.rawSpan, hash: index.hash(key.rawSpan),
        Slot(sequence: UInt64(number + 1), labelSet: 0, size: SizeClass(bytes: 9)))
    }
    index.freeze()
    let disk = MemoryFileSystem()
    try disk.createDirectory("/store")
    let info = RunInfo(
      storeID: [UInt8](repeating: 1, count: 16), runID: 2, sequence: UInt64(2 * count))
    try RunWriter.write(
      index.mergeInput(taking: 0), to: try disk.open("/store/run", .create), info: info)
    return try SortedRun(
      file: FailingPages(disk, file: "run", pages: pages).open("/store/run", .readWrite))
  }
}
