// swift-tools-version: 6.2
import PackageDescription

// ThreadSanitizer does not understand `Synchronization.Mutex` on Linux; builds for it set this
// variable and take a mutex that it understands: `TIDEMARK_TSAN=1 swift test --sanitize=thread`.
let sanitizesThreads = Context.environment["TIDEMARK_TSAN"] == "1"

// Puts bugs into the engine that can be switched on, which `Tools/torture planted` does to see
// that they are found.
let plantsBugs = Context.environment["TIDEMARK_PLANTED"] == "1"

// Optimizes what the tests spend their time in, which takes a fifth of the time then; `Tools/test`
// sets this. Without it the package has no unsafe flags, so that others can depend on it.
let optimizes = Context.environment["TIDEMARK_OPTIMIZED"] == "1"

let strict: [SwiftSetting] =
  [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableExperimentalFeature("Lifetimes"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
  ] + (sanitizesThreads ? [.define("TIDEMARK_TSAN")] : [])
  + (plantsBugs ? [.define("TIDEMARK_PLANTED")] : [])
  + (optimizes ? [.unsafeFlags(["-O"])] : [])

/// Tests speak to the engine through its safe interface only; they need no `unsafe` markers.
let relaxed: [SwiftSetting] =
  [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableExperimentalFeature("Lifetimes"),
    .treatAllWarnings(as: .error),
  ] + (optimizes ? [.define("TIDEMARK_OPTIMIZED")] : [])

// Apple's SDKs have no zstd, Linux distributions do. Only the default depends on the machine that
// builds: each can build either way.
#if canImport(Darwin)
  let defaultTraits: Set<String> = ["BundledZstd"]
  // In the C target: with a resource a Swift target would import all of Foundation.
  let cTidemark = Target.target(name: "CTidemark", resources: [.copy("PrivacyInfo.xcprivacy")])
#else
  let defaultTraits: Set<String> = []
  let cTidemark = Target.target(name: "CTidemark", exclude: ["PrivacyInfo.xcprivacy"])
#endif

let package = Package(
  name: "tidemark",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .visionOS(.v2)],
  products: [
    .library(name: "Tidemark", targets: ["Tidemark"]),
    .library(name: "TidemarkFoundation", targets: ["TidemarkFoundation"]),
    .library(name: "TidemarkSync", targets: ["TidemarkSync"]),
    .library(name: "TidemarkSyncServer", targets: ["TidemarkSyncServer"]),
    .library(name: "TidemarkPostgres", targets: ["TidemarkPostgres"]),
    .library(name: "TidemarkREST", targets: ["TidemarkREST"]),
    .library(name: "TidemarkHTTP", targets: ["TidemarkHTTP"]),
    .library(name: "TidemarkHTTPCache", targets: ["TidemarkHTTPCache"]),
    .library(name: "TidemarkSwiftUI", targets: ["TidemarkSwiftUI"]),
    .library(name: "TidemarkTesting", targets: ["TidemarkTesting"]),
    .library(name: "TidemarkTestKit", targets: ["TidemarkTestKit"]),
    .library(name: "TidemarkSyncTestKit", targets: ["TidemarkSyncTestKit"]),
    .executable(name: "logtool", targets: ["logtool"]),
    .executable(name: "logtool-http", targets: ["logtool-http"]),
  ],
  traits: [
    .default(enabledTraits: defaultTraits),
    .trait(
      name: "BundledZstd",
      description: "Builds zstd from its own package; else the system's zstd is linked."),
    .trait(
      name: "Encryption",
      description: """
        Encryption at rest by swift-crypto, for systems without CryptoKit; without it no key can \
        be given there.
        """),
    .trait(
      name: "AsyncHTTPClient",
      description: "Replication over HTTP by async-http-client, beside URLSession."),
    .trait(
      name: "PostgreSQL",
      description: "Sync servers over PostgreSQL, by libpq; without it TidemarkPostgres is empty."),
  ],
  dependencies: [
    .package(url: "https://github.com/facebook/zstd", from: "1.5.4"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
  ],
  targets: [
    // The system's zstd. It has no `pkgConfig`, since the package manager would then pass -lzstd to
    // the linker in every build, also in one with the trait BundledZstd.
    .systemLibrary(name: "CZstd", providers: [.apt(["libzstd-dev"])]),
    cTidemark,
    // Empty but on Linux, where it needs libcurl, as Foundation does there.
    .target(
      name: "CTidemarkHTTP",
      linkerSettings: [.linkedLibrary("curl", .when(platforms: [.linux]))]),
    .target(
      name: "TidemarkEngine",
      dependencies: [
        "CZstd", "CTidemark",
        .product(name: "libzstd", package: "zstd", condition: .when(traits: ["BundledZstd"])),
        .product(
          name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Encryption"])),
      ],
      swiftSettings: strict),
    // Entries as lines of JSON, and the scanner and writer of JSON that others use.
    .target(name: "TidemarkNDJSON", dependencies: ["TidemarkEngine"], swiftSettings: strict),
    // The three rooms of Tidemark: a store, and what stands on it and registers with it.
    .target(name: "TidemarkStore", dependencies: ["TidemarkEngine"], swiftSettings: strict),
    .target(
      name: "TidemarkCollections",
      dependencies: ["CTidemark", "TidemarkEngine", "TidemarkNDJSON", "TidemarkStore"],
      swiftSettings: strict),
    .target(
      name: "TidemarkCaches",
      dependencies: ["TidemarkEngine", "TidemarkNDJSON", "TidemarkStore"],
      swiftSettings: strict),
    .target(
      name: "Tidemark",
      dependencies: ["TidemarkCaches", "TidemarkCollections", "TidemarkEngine", "TidemarkStore"],
      swiftSettings: strict),
    .target(name: "TidemarkFoundation", dependencies: ["Tidemark"], swiftSettings: strict),
    // Messages, their coding, and what a peer is: all that both ends have in common.
    .target(
      name: "TidemarkSyncProtocol",
      dependencies: ["Tidemark", "TidemarkEngine", "TidemarkNDJSON"],
      swiftSettings: strict),
    .target(
      name: "TidemarkSync",
      dependencies: ["Tidemark", "TidemarkEngine", "TidemarkNDJSON", "TidemarkSyncProtocol"],
      swiftSettings: strict),
    .target(
      name: "TidemarkSyncServer",
      dependencies: ["Tidemark", "TidemarkEngine", "TidemarkSyncProtocol"],
      swiftSettings: strict),
    // Feeds in tables of PostgreSQL: without its trait nothing is looked for.
    .systemLibrary(
      name: "CPostgres",
      pkgConfig: "libpq",
      providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    .target(
      name: "TidemarkPostgres",
      dependencies: [
        .target(name: "CPostgres", condition: .when(traits: ["PostgreSQL"])),
        "Tidemark", "TidemarkEngine", "TidemarkSyncProtocol", "TidemarkSyncServer",
      ],
      swiftSettings: strict),
    .target(
      name: "TidemarkREST", dependencies: ["Tidemark", "TidemarkEngine", "TidemarkSyncProtocol"],
      swiftSettings: strict),
    .target(
      name: "TidemarkHTTP",
      dependencies: [
        "Tidemark", "TidemarkEngine", "TidemarkSyncProtocol",
        .target(name: "CTidemarkHTTP", condition: .when(platforms: [.linux])),
        .product(
          name: "AsyncHTTPClient", package: "async-http-client",
          condition: .when(traits: ["AsyncHTTPClient"])),
      ],
      swiftSettings: strict),
    .target(
      name: "TidemarkHTTPCache",
      dependencies: ["Tidemark", "TidemarkEngine", "TidemarkSyncProtocol", "TidemarkHTTP"],
      swiftSettings: strict),
    // Property wrappers for views; without SwiftUI only the state that these show.
    .target(
      name: "TidemarkSwiftUI",
      dependencies: ["Tidemark", "TidemarkCollections", "TidemarkStore", "TidemarkSync"],
      swiftSettings: strict),
    // Imports Testing, which programs other than tests do not have.
    .target(name: "TidemarkTesting", dependencies: ["Tidemark"], swiftSettings: strict),
    .target(
      name: "TidemarkTestKit",
      dependencies: ["Tidemark", "TidemarkEngine", "TidemarkNDJSON", "TidemarkSyncProtocol"],
      swiftSettings: strict),
    .target(
      name: "TidemarkSyncTestKit",
      dependencies: [
        "Tidemark", "TidemarkEngine", "TidemarkREST", "TidemarkSync", "TidemarkSyncServer",
        "TidemarkTestKit",
      ],
      swiftSettings: strict),
    .target(
      name: "LogtoolKit",
      dependencies: [
        "Tidemark", "TidemarkEngine", "TidemarkNDJSON", "TidemarkSync", "TidemarkSyncServer",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "logtool", dependencies: ["LogtoolKit"], path: "Tools/logtool",
      swiftSettings: strict),
    .executableTarget(
      name: "logtool-http", dependencies: ["LogtoolKit", "TidemarkHTTP"],
      path: "Tools/logtool-http", swiftSettings: strict),
    .testTarget(
      name: "TidemarkEngineTests",
      dependencies: [
        "CZstd", "TidemarkEngine", "TidemarkTestKit",
        .product(name: "libzstd", package: "zstd", condition: .when(traits: ["BundledZstd"])),
      ],
      swiftSettings: relaxed),
    // Counts what a test's own thread asks of the memory, where the C library lets it.
    .target(name: "CAllocationCount", path: "Tests/CAllocationCount"),
    .testTarget(
      name: "TidemarkTests",
      dependencies: [
        "CAllocationCount", "Tidemark", "TidemarkCaches", "TidemarkCollections", "TidemarkEngine",
        "TidemarkNDJSON", "TidemarkStore", "TidemarkTestKit",
      ],
      swiftSettings: relaxed),
    .testTarget(
      name: "TidemarkFoundationTests", dependencies: ["TidemarkFoundation", "Tidemark"],
      swiftSettings: relaxed),
    .testTarget(
      name: "TidemarkSyncTests",
      dependencies: [
        "TidemarkSyncProtocol", "TidemarkSync", "TidemarkSyncServer", "TidemarkREST", "Tidemark",
        "TidemarkEngine", "TidemarkPostgres", "TidemarkTestKit", "TidemarkSyncTestKit",
      ],
      swiftSettings: relaxed),
    // The trials of `Tools/torture caches`, which use the caches as a program does.
    .target(
      name: "CacheCampaigns",
      dependencies: [
        "Tidemark", "TidemarkHTTP", "TidemarkHTTPCache", "TidemarkSync", "TidemarkTestKit",
      ],
      path: "Tools/Campaigns/Sources/CacheCampaigns", swiftSettings: relaxed),
    .testTarget(
      name: "TidemarkHTTPTests",
      dependencies: [
        "CacheCampaigns", "RestExample", "TidemarkHTTP", "TidemarkHTTPCache", "TidemarkSync",
        "TidemarkSyncServer",
        "TidemarkSyncProtocol", "TidemarkSyncTestKit", "Tidemark", "TidemarkEngine",
        "TidemarkTestKit",
      ],
      swiftSettings: relaxed),
    .testTarget(
      name: "TidemarkTestKitTests",
      dependencies: ["TidemarkTestKit", "TidemarkTesting", "TidemarkEngine", "Tidemark"],
      swiftSettings: relaxed),
    .testTarget(
      name: "TidemarkSwiftUITests",
      dependencies: [
        "Tidemark", "TidemarkSwiftUI", "TidemarkSync", "TidemarkSyncServer", "TidemarkTesting",
      ],
      swiftSettings: relaxed),
    .testTarget(
      name: "RepositoryTests", exclude: ["taken-names.txt", "unsafe-files.txt"],
      swiftSettings: relaxed),
    // Compiles what README and articles show against these modules.
    .testTarget(
      name: "DocumentationTests",
      dependencies: [
        "Tidemark", "TidemarkFoundation", "TidemarkSync", "TidemarkSyncServer", "TidemarkREST",
        "TidemarkHTTP", "TidemarkHTTPCache", "TidemarkTestKit", "TidemarkSyncTestKit",
        "TidemarkSwiftUI", "TidemarkTesting",
      ],
      swiftSettings: relaxed),
    // Pages that show what replaces what a program has today.
    .target(
      name: "CachingExamples",
      dependencies: [
        "Tidemark", "TidemarkFoundation", "TidemarkSync", "TidemarkHTTP", "TidemarkHTTPCache",
      ],
      path: "Tools/Examples/caching", swiftSettings: strict),
    .target(
      name: "CollectionExamples", dependencies: ["Tidemark", "TidemarkFoundation"],
      path: "Tools/Examples/collections", swiftSettings: strict),
    .target(
      name: "RestExample", dependencies: ["Tidemark", "TidemarkHTTP", "TidemarkREST"],
      path: "Tools/Examples/rest", exclude: ["server.py"], swiftSettings: strict),
    // Programs in a terminal over these; `Tools/Examples` is a package that runs them.
    .target(
      name: "ExamplePrograms",
      dependencies: [
        "CollectionExamples", "RestExample", "Tidemark", "TidemarkSync",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Tools/Examples/programs", swiftSettings: strict),
    .testTarget(
      name: "ExampleTests",
      dependencies: [
        "CachingExamples", "CollectionExamples", "ExamplePrograms", "RestExample", "Tidemark",
        "TidemarkEngine", "TidemarkSync", "TidemarkSyncServer", "TidemarkHTTP", "TidemarkTestKit",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: relaxed),
    .testTarget(
      name: "LogtoolTests",
      dependencies: ["LogtoolKit", "TidemarkSync", "TidemarkSyncServer", "TidemarkTestKit"],
      swiftSettings: relaxed),
  ],
  swiftLanguageModes: [.v6]
)
