//! The program behind `make image`: fills the build context of the Containerfile and writes the image as an OCI archive.

use std::process::ExitCode;

use cofferdam_cluster::own_images;
use cofferdam_e2e::install::IMAGE;

fn main() -> ExitCode {
    let made = own_images::build_context().and_then(|context| Ok((context, own_images::cofferdam_image(IMAGE)?)));
    match made {
        Ok((context, archive)) => {
            println!("context of the Containerfile: {}", context.display());
            println!("the image, as an OCI archive:  {}", archive.display());
            println!("pushed, for example, by:       skopeo copy oci-archive:{} docker://…", archive.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the image cannot be made: {error}");
            ExitCode::FAILURE
        }
    }
}
