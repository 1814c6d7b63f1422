import Foundation

/// How fast the machine itself is, measured in the same run.
struct Limits {
  let directory: String

  func run() throws {
    copy()
    let path = directory + "/limits"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let file = Foundation.open(path, O_RDWR | O_CREAT | O_TRUNC, 0o644)
    guard file >= 0 else { throw BenchError("no file can be made in \(directory)") }
    defer { close(file) }
    try write(file)
    try read(file)
    try sync(file)
  }

  private func show(_ row: String, _ value: Double) {
    ChildLine(measure: Measure(row, value)).show()
  }

  private func copy() {
    let count = 256 << 20
    let from = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 4096)
    let to = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 4096)
    defer {
      from.deallocate()
      to.deallocate()
    }
    memset(from, 1, count)
    memset(to, 2, count)
    let cost = Cost { for _ in 0..<4 { memcpy(to, from, count) } }
    show("memcpy", Double(count) * 4 / cost.wall / 1e9)
  }

  private static let fileBytes = 256 << 20

  /// One after the other, with a sync at the end.
  private func write(_ file: Int32) throws {
    var random = SeededRandom(seed: 1)
    let block = (0..<(1 << 17)).map { _ in random.next() }
    let cost = try Cost {
      for _ in 0..<(Self.fileBytes >> 20) {
        guard Foundation.write(file, block, 1 << 20) == 1 << 20 else {
          throw BenchError("the disk is full")
        }
      }
      Self.sync(file)
    }
    show("write", Double(Self.fileBytes) / cost.wall / 1e9)
  }

  /// 320 bytes from the page cache.
  private func read(_ file: Int32) throws {
    let count = 300_000
    let places = Order.shuffled(Self.fileBytes / 320, count: count, seed: 2)
    var buffer = [UInt8](repeating: 0, count: 320)
    let cost = try Cost {
      for place in places {
        guard pread(file, &buffer, 320, off_t(place) * 320) == 320 else {
          throw BenchError("the file cannot be read")
        }
      }
    }
    show("pread", cost.wall / Double(count) * 1e6)
  }

  /// 4 KiB at a time into a file that was written before.
  private func sync(_ file: Int32) throws {
    show("sync", try Self.syncRate(file, count: 1000))
  }

  private static func syncRate(_ file: Int32, count: Int) throws -> Double {
    let block = [UInt8](repeating: 7, count: 4096)
    let cost = try Cost {
      for place in 0..<count {
        guard pwrite(file, block, 4096, off_t(place) * 4096) == 4096 else {
          throw BenchError("the file cannot be written")
        }
        Self.sync(file)
      }
    }
    return Double(count) / cost.wall / 1000
  }

  /// How many thousand times a second the disk takes 4 KiB, in a file made for it.
  static func syncRate(_ path: String, count: Int) throws -> Double {
    defer { try? FileManager.default.removeItem(atPath: path) }
    let file = Foundation.open(path, O_RDWR | O_CREAT | O_TRUNC, 0o644)
    guard file >= 0 else { throw BenchError("\(path) cannot be made") }
    defer { close(file) }
    let zeros = [UInt8](repeating: 0, count: count * 4096)
    guard Foundation.write(file, zeros, zeros.count) == zeros.count else {
      throw BenchError("the disk is full")
    }
    sync(file)
    return try syncRate(file, count: count)
  }

  private static func sync(_ file: Int32) {
    #if !canImport(Darwin)
      fdatasync(file)
    #else
      _ = fcntl(file, F_FULLFSYNC)
    #endif
  }
}
