import TidemarkTestKit

@testable import TidemarkEngine

/// A disk on which some pages of a file give an error.
struct FailingPages: ForwardingDisk {
  let base: any FileSystem
  let file: String
  let pages: [Int]

  init(_ base: any FileSystem, file: String, pages: [Int]) {
    self.base = base
    self.file = file
    self.pages = pages
  }

  func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    let opened = try base.open(path, mode)
    return path.hasSuffix("store/" + file) ? FailingFile(opened, pages) : opened
  }
}

private final class FailingFile: ForwardingFile {
  let base: any File
  let pages: [Int]

  init(_ base: any File, _ pages: [Int]) {
    self.base = base
    self.pages = pages
  }

  func read(into buffer: inout MutableRawSpan, at offset: Int) throws(FileSystemError) -> Int {
    let end = offset + buffer.byteCount
    if pages.contains(where: { $0 < end && $0 + 4096 > offset }) {
      throw FileSystemError(.read, path: "", number: ErrorNumber.inputOutput)
    }
    return try base.read(into: &buffer, at: offset)
  }
}
