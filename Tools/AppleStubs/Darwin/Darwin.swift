// swift-format-ignore-file: C names are kept.
//
// The module `Darwin` for Tools/check-apple: Glibc, with what Darwin has besides in DarwinHeaders.
// A name that is declared here hides Glibc's, because its type differs on Darwin or because Darwin
// does not have it. Each says in which of Apple's headers it stands, or would.
@_exported import DarwinHeaders
@_exported import Glibc

// sys/socket.h: a macro, where Glibc has an enumeration.
public var SOCK_STREAM: Int32 { 1 }

// sys/resource.h: likewise.
public var RLIMIT_NOFILE: Int32 { 8 }
public var RUSAGE_SELF: Int32 { 0 }
public func getrlimit(_ resource: Int32, _ limit: UnsafeMutablePointer<rlimit>) -> Int32 { 0 }
public func setrlimit(_ resource: Int32, _ limit: UnsafePointer<rlimit>) -> Int32 { 0 }
public func getrusage(_ who: Int32, _ usage: UnsafeMutablePointer<rusage>) -> Int32 { 0 }

// sys/mman.h
public var MADV_FREE: Int32 { 5 }
public var MAP_ANON: Int32 { 0x1000 }
public var MAP_NORESERVE: Int32 { 0x40 }
@available(*, unavailable, message: "Linux alone has it")
public var MADV_HUGEPAGE: Int32 { 0 }
@available(*, unavailable, message: "Linux alone has it")
public var MADV_POPULATE_WRITE: Int32 { 0 }

// sys/statvfs.h: the counts of blocks have 32 bits (fsblkcnt_t is unsigned int).
@available(*, unavailable, message: "it counts blocks in 32 bits on Darwin; take statfs")
public func statvfs(_ path: UnsafePointer<CChar>, _ info: UnsafeMutablePointer<statvfs>) -> Int32 {
  0
}

// unistd.h
@available(*, unavailable, message: "Darwin does not declare it; take F_FULLFSYNC")
public func fdatasync(_ descriptor: Int32) -> Int32 { 0 }
@available(*, unavailable, message: "Linux alone has it")
public func pipe2(_ ends: UnsafeMutablePointer<Int32>, _ flags: Int32) -> Int32 { 0 }
@available(*, unavailable, message: "Linux alone has it")
public func gettid() -> Int32 { 0 }

// fcntl.h
@available(*, unavailable, message: "Darwin does not have it; take F_PREALLOCATE")
public func posix_fallocate(_ descriptor: Int32, _ offset: off_t, _ length: off_t) -> Int32 { 0 }
@available(*, unavailable, message: "Darwin does not have it")
public func posix_fadvise(
  _ descriptor: Int32, _ offset: off_t, _ length: off_t, _ advice: Int32
) -> Int32 {
  0
}

// sys/socket.h
@available(*, unavailable, message: "Darwin does not have it; take SO_NOSIGPIPE")
public var MSG_NOSIGNAL: Int32 { 0 }
