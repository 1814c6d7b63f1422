/// A file for reading whose unreadable sectors read as zeros and are noted.
///
/// A disk that is failing gives errors for some pages and good bytes for the rest; zeros do not
/// match any checksum, so whoever reads through this finds them as damage and goes on.
package final class TolerantFile: File {
  static let pageBytes = 4096

  private let file: any File
  private let bad = Lock<[Int]>([])

  package init(_ file: any File) { self.file = file }

  /// Where the pages begin that could not be read so far, ascending.
  package var unreadablePages: [Int] { bad.withLock { $0.sorted() } }

  package func length() throws(FileSystemError) -> Int { try file.length() }

  package func read(
    into buffer: inout MutableRawSpan, at offset: Int
  ) throws(FileSystemError) -> Int {
    do { return try file.read(into: &buffer, at: offset) } catch {
      guard error.number == ErrorNumber.inputOutput, buffer.byteCount > 0 else { throw error }
    }
    // One page at a time from here on: a short read makes the caller ask for the rest.
    let pageEnd = (offset / Self.pageBytes + 1) * Self.pageBytes
    let count = min(buffer.byteCount, pageEnd - offset, max(0, try file.length() - offset))
    var page = buffer._mutatingExtracting(first: count)
    do { return try file.read(into: &page, at: offset) } catch {
      guard error.number == ErrorNumber.inputOutput else { throw error }
    }
    page.store(copying: [UInt8](repeating: 0, count: count).rawSpan, at: 0)
    let start = pageEnd - Self.pageBytes
    bad.withLock { if !$0.contains(start) { $0.append(start) } }
    return count
  }

  package func write(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) -> Int {
    throw FileSystemError(.write, path: "", number: ErrorNumber.badDescriptor)
  }

  package func truncate(to length: Int) throws(FileSystemError) {
    throw FileSystemError(.truncate, path: "", number: ErrorNumber.badDescriptor)
  }

  package func allocate(to length: Int) throws(FileSystemError) {
    throw FileSystemError(.allocate, path: "", number: ErrorNumber.badDescriptor)
  }

  package func sync() throws(FileSystemError) {}

  package func close() { file.close() }
}
